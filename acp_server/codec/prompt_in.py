"""ACP prompt blocks to message content. Pure.

Source: https://agentclientprotocol.com/protocol/v1/content and /prompt-turn
"""

import json
from base64 import b64decode
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from acp_server.errors import invalid_params
from agent_loop import (
    PICTURE_KINDS,
    PICTURE_LIMIT_BYTES,
    Content,
    Image,
    Text,
    clean_text,
    picture_kind,
    text_of,
)


def prompt_in(blocks: Sequence[Any], *, blind: str = "") -> tuple[Content, ...]:
    """What the agent is sent: text, links in their place as a bracketed name and URI, and pictures.

    Args:
        blind: Name of the model that would be shown a picture and sees none; empty for one that does.
    Raises:
        RpcError: -32602 naming the block: malformed, not advertised, or nothing said at all.
    """
    parts = [_content_of(block, f"prompt[{at}]", blind) for at, block in enumerate(blocks)]
    said: list[Content] = []
    for is_text, run in groupby(parts, lambda part: isinstance(part, Text)):
        if not is_text:
            said.extend(run)
        elif (text := clean_text(text_of(tuple(run)))).strip():
            said.append(Text(text))
    if not said:
        raise invalid_params("prompt", "is empty: say something")
    return tuple(said)


def _content_of(block: Any, path: str, blind: str) -> Text | Image:
    if not isinstance(block, dict):
        raise invalid_params(path, "must be an object")
    match block.get("type"):
        case "text":
            return Text(_string(block, "text", path))
        case "resource_link":
            name, uri = _string(block, "name", path), _string(block, "uri", path)
            shown_name, shown_uri = (json.dumps(part, ensure_ascii=False) for part in (name, uri))
            return Text(f"\n[linked resource {shown_name} at {shown_uri}; its content is not included]\n")
        case "image" if blind:
            raise invalid_params(f"{path}.type", f"is 'image', and {_cannot_see(blind)}")
        case "image":
            return _picture(block, path)
        case "audio" | "resource" as kind:
            raise invalid_params(f"{path}.type", f"is {kind!r}, which this agent does not advertise")
        case other:
            raise invalid_params(f"{path}.type", f"is {other!r:.60}, not a content block ACP knows")


def _picture(block: dict[str, Any], path: str) -> Image:
    """A picture, and of the kind it is: a maker refuses one that is called another."""
    data, declared = _string(block, "data", path), _string(block, "mimeType", path)
    if declared not in PICTURE_KINDS:
        words = f"is {declared[:60]!r}, which is none of {', '.join(PICTURE_KINDS)}"
        raise invalid_params(f"{path}.mimeType", words)
    try:
        picture = b64decode(data, validate=True)
    except ValueError:
        raise invalid_params(f"{path}.data", "must be base64") from None
    if len(picture) > PICTURE_LIMIT_BYTES:
        words = f"is a picture of {len(picture):,} bytes; {PICTURE_LIMIT_BYTES:,} can be shown to a model"
        raise invalid_params(f"{path}.data", words)
    kind = picture_kind(picture)
    if kind is None:
        raise invalid_params(f"{path}.data", f"is no picture of {declared}")
    return Image(data, kind)


def _cannot_see(model: str) -> str:
    return (
        f"the model {model} is not known to see pictures; choose another,"
        f' or set images = true under [models."{model}"]'
    )


def _string(block: dict[str, Any], key: str, path: str) -> str:
    value = block.get(key)
    if not isinstance(value, str):
        raise invalid_params(f"{path}.{key}", "must be a string")
    return value
