"""ACP prompt blocks to message content. Pure.

Source: https://agentclientprotocol.com/protocol/v1/content and /prompt-turn
"""

import json
from collections.abc import Sequence
from typing import Any

from acp_server.errors import invalid_params
from agent_loop import Content, Text, clean_text


def prompt_in(blocks: Sequence[Any]) -> tuple[Content, ...]:
    """What the agent is sent: one text, links in their place as a bracketed name and URI.

    Raises:
        RpcError: -32602 naming the block: malformed, not advertised, or nothing said at all.
    """
    texts = [_text_of(block, f"prompt[{at}]") for at, block in enumerate(blocks)]
    text = clean_text("".join(texts))
    if not text.strip():
        raise invalid_params("prompt", "is empty: say something")
    return (Text(text),)


def _text_of(block: Any, path: str) -> str:
    if not isinstance(block, dict):
        raise invalid_params(path, "must be an object")
    match block.get("type"):
        case "text":
            return _string(block, "text", path)
        case "resource_link":
            name, uri = _string(block, "name", path), _string(block, "uri", path)
            shown_name, shown_uri = (json.dumps(part, ensure_ascii=False) for part in (name, uri))
            return f"\n[linked resource {shown_name} at {shown_uri}; its content is not included]\n"
        case "image" | "audio" | "resource" as kind:
            raise invalid_params(f"{path}.type", f"is {kind!r}, which this agent does not advertise")
        case other:
            raise invalid_params(f"{path}.type", f"is {other!r:.60}, not a content block ACP knows")


def _string(block: dict[str, Any], key: str, path: str) -> str:
    value = block.get(key)
    if not isinstance(value, str):
        raise invalid_params(f"{path}.{key}", "must be a string")
    return value
