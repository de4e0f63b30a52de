"""Says a request in the words of Anthropic's Messages API.

Pure: the same request gives the same bytes, and a longer conversation begins with the bytes of the shorter
one but for the mark that tells how far to cache.

Rules.
1. People and the model take turns: what several people say becomes one message, and where nobody spoke
   between two answers, before the first or after the last, the person asks the model to go on.
2. Tool results stand first in the message after the calls; whatever came between follows them.
3. Thoughts go back as they came, signed; unsigned ones are somebody else's, and would be refused, as would
   one that nothing follows. Newer models sign all that came before, too: what was once sent stays as it was.
4. What the API refuses by its form (blank text, an id or a name with a dot, a picture it or the model cannot
   read) is mended here: it would fail this request and so every later prompt of the session.
5. Three places are marked for the cache: the last tool, the system prompt, and the end of the conversation.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal, assert_never

import orjson

from agent_loop.events.facts import ThoughtLevel
from agent_loop.llm.provider import ModelRequest, ToolSchema
from agent_loop.llm.providers.bodies import NO_OUTPUT, arguments_out, body_bytes, picture_note
from agent_loop.messages import (
    Content,
    Image,
    Json,
    Message,
    Reasoning,
    Text,
    ToolCallBlock,
    ToolResultBlock,
)

GO_ON: Final = "Go on."
"""What the person says where the API wants them to say something and nobody did."""

Thinking = Literal["adaptive"] | int
"""Think as the model sees fit, or with so many tokens at most."""

_CACHE: Final = {"type": "ephemeral"}
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})
_PICTURES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_NOT_IN_A_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]")


def request_body(
    request: ModelRequest,
    *,
    max_tokens: int,
    thinking: Thinking | None,
    effort: ThoughtLevel | None = None,
    thoughts_from: int = 0,
) -> bytes:
    """The body of a streaming request.

    Args:
        max_tokens: The longest answer, thoughts included.
        thinking: None leaves it to the model's own default.
        effort: How much to think and say; None for the model's own default.
        thoughts_from: Place of the first message whose thoughts go back; earlier ones are left out.
    """
    body: Json = {"model": request.model, "max_tokens": max_tokens, "stream": True}
    messages = messages_out(request.messages, thoughts_from, pictures=request.info.images)

    if thinking == "adaptive":
        body["thinking"] = {"type": "adaptive", "display": "summarized"}
    elif thinking is not None and _may_think(messages):
        body["thinking"] = {"type": "enabled", "budget_tokens": thinking}

    if effort is not None:
        body["output_config"] = {"effort": effort}

    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tools"][-1]["cache_control"] = _CACHE

    if request.system.strip():
        body["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHE}]

    # Last, so that what grows stands at the end.
    body["messages"] = messages
    messages[-1]["content"][-1]["cache_control"] = _CACHE
    return body_bytes(body)


def messages_out(messages: Sequence[Message], thoughts_from: int = 0, *, pictures: bool = True) -> list[Json]:
    """The conversation, as a list of Anthropic messages that is never empty.

    Args:
        pictures: Whether the model sees any.
    """
    out: list[Json] = []
    ids = _Ids()
    # How many tool results the message that is being made begins with.
    results = 0

    for place, message in enumerate(messages):
        blocks = [
            block for content in message.content if (block := _block(content, ids, pictures)) is not None
        ]

        if message.role == "assistant":
            blocks = _without_vain_thoughts(blocks, keep=place >= thoughts_from)

            if blocks:
                if not out or out[-1]["role"] == "assistant":
                    out.append(_go_on())
                out.append({"role": "assistant", "content": blocks})

            continue

        if blocks and (not out or out[-1]["role"] == "assistant"):
            out.append({"role": "user", "content": []})
            results = 0

        for block in blocks:
            if block["type"] == "tool_result":
                out[-1]["content"].insert(results, block)
                results += 1
            else:
                out[-1]["content"].append(block)

    if not out or out[-1]["role"] == "assistant":
        out.append(_go_on())

    return out


class _Ids:
    """The ids of calls in letters the API takes, each still unlike all others."""

    def __init__(self) -> None:
        self._out: dict[str, str] = {}
        self._used: set[str] = set()

    def out(self, call_id: str) -> str:
        """The id to send, the same each time."""
        if call_id not in self._out:
            fit = _name(call_id)

            while fit in self._used:
                fit += "_"

            self._out[call_id] = fit
            self._used.add(fit)

        return self._out[call_id]


def _block(content: Content, ids: _Ids, pictures: bool) -> Json | None:
    """One block; None for one that has nothing to say to this API."""
    match content:
        case Text(text):
            return {"type": "text", "text": text} if text.strip() else None
        case Reasoning(text, {"signature": str(signature)}):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case Reasoning(_, {"redacted_thinking": str(data)}):
            return {"type": "redacted_thinking", "data": data}
        case Reasoning():
            return None
        case ToolCallBlock(call_id, name, arguments):
            # Verbatim, so that it reads to the model as it wrote it, and however deep it is nested.
            said = orjson.Fragment(arguments_out(arguments, must_be_object=True))
            return {"type": "tool_use", "id": ids.out(call_id), "name": _name(name), "input": said}
        case ToolResultBlock():
            return _result(content, ids, pictures)
        case Image():
            return _picture(content, pictures)
        case _:
            assert_never(content)


def _without_vain_thoughts(blocks: list[Json], *, keep: bool) -> list[Json]:
    """An answer less what nothing follows, when it was stopped while it thought; or less all it thought."""
    if not keep:
        return [block for block in blocks if block["type"] not in _THOUGHTS]

    while blocks and blocks[-1]["type"] in _THOUGHTS:
        blocks.pop()

    return blocks


def _result(result: ToolResultBlock, ids: _Ids, pictures: bool) -> Json:
    parts = [part for shown in result.content if (part := _block(shown, ids, pictures)) is not None]
    block: Json = {
        "type": "tool_result",
        "tool_use_id": ids.out(result.call_id),
        "content": parts or [{"type": "text", "text": NO_OUTPUT}],
    }

    # An error with a picture in it is refused.
    if result.is_error and all(part["type"] == "text" for part in block["content"]):
        block["is_error"] = True

    return block


def _picture(image: Image, pictures: bool) -> Json:
    if not pictures or image.mime_type not in _PICTURES:
        return {"type": "text", "text": picture_note(image.mime_type)}

    source = {"type": "base64", "media_type": image.mime_type, "data": image.data}
    return {"type": "image", "source": source}


def _name(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", name) or "unnamed"


def _go_on() -> Json:
    return {"role": "user", "content": [{"type": "text", "text": GO_ON}]}


def _tool(tool: ToolSchema) -> Json:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def _may_think(messages: Sequence[Json]) -> bool:
    """Whether thoughts may be asked for: tools that were called without any must be followed without."""
    called = False

    for message in reversed(messages):
        first = message["content"][0]["type"]

        if message["role"] == "assistant":
            if first in _THOUGHTS:
                return True
            called = True
        elif first != "tool_result":
            break

    return not called
