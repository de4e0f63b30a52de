"""Speaks Anthropic's Messages API from the endpoint's side, and minds the manners the real one minds.

The other direction of `llm.providers.anthropic_*`: chunks become events here. Pure; sockets belong to
`provider_server`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_loop.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Finish,
    FinishKind,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from agent_loop.messages import Reasoning

STOP_REASON: Mapping[FinishKind, str] = {
    "stop": "end_turn",
    "tool-calls": "tool_use",
    "max-tokens": "max_tokens",
    "refusal": "refusal",
}

STOP = b'event: message_stop\ndata: {"type": "message_stop"}'

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def events_of(chunks: Sequence[Chunk], *, stop: bool = True) -> list[bytes]:
    """The events that say these chunks, as an endpoint would say them: one block after the other."""
    usage = next((chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)), Usage())
    events = [start_of(usage), event_of("ping")]
    is_open: int | None = None

    for chunk in chunks:
        if isinstance(chunk, BlockStart):
            raise ValueError(f"Anthropic has no word for {chunk}")

        if isinstance(chunk, UsageChunk):
            continue

        index = None if isinstance(chunk, Finish) else chunk.index

        if is_open is not None and index != is_open:
            events.append(event_of("content_block_stop", index=is_open))

        if index is not None and index != is_open:
            events.append(event_of("content_block_start", index=index, content_block=_opening(chunk)))

        is_open = index

        match chunk:
            case Finish(kind):
                events.append(end_of(STOP_REASON[kind], usage))
            case BlockEnd() if chunk.block is not None:
                pass
            case BlockEnd(index=index, opaque=opaque):
                events.append(_delta(index, "signature_delta", signature=opaque["signature"]))
            case TextDelta(index, text):
                events.append(_delta(index, "text_delta", text=text))
            case ReasoningDelta(index, text):
                events.append(_delta(index, "thinking_delta", thinking=text))
            case ToolCallDelta(index, _, _, arguments):
                events.append(_delta(index, "input_json_delta", partial_json=arguments))

    return [*events, STOP] if stop else events


def event_of(kind: str, **more: Any) -> bytes:
    """One event, with its name on a line of its own as the API sends it."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **more})}".encode()


def start_of(usage: Usage) -> bytes:
    """The first event: what was read, and a first count of what was written."""
    counts = {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": 1 if usage.output_tokens else 0,
    }
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": []}
    return event_of("message_start", message={**head, "stop_reason": None, "usage": counts})


def end_of(reason: str | None, usage: Usage) -> bytes:
    """The last event but one: why it ended, and what was written in all."""
    counts = {
        "output_tokens": usage.output_tokens + usage.reasoning_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
    }
    return event_of("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=counts)


def error_body(kind: str, message: str) -> bytes:
    """The body of an answer with an error status."""
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def problem(body: Any) -> str | None:
    """What the real endpoint would refuse about a request, in its words; None when it would not."""
    return next(_problems(body), None)


def _problems(body: Any) -> Iterator[str]:
    if type(body.get("max_tokens")) is not int or body["max_tokens"] < 1:
        yield "max_tokens: Field required"

    if b"cache_control" in (raw := json.dumps(body).encode()) and raw.count(b'"cache_control"') > 4:
        yield "A maximum of 4 blocks with cache_control may be provided"

    yield from _tool_problems(body.get("tools"))
    yield from _thinking_problems(body)

    messages = body["messages"]
    if not messages or messages[0]["role"] != "user":
        yield "messages: first message must use the user role"
    elif messages[-1]["role"] != "user":
        yield "This model does not support assistant message prefill"

    for at, text in enumerate(body.get("system", [])):
        yield from _block_problems(f"system.{at}", text)

    used: set[str] = set()
    owed: list[str] = []

    for at, message in enumerate(messages):
        place, content = f"messages.{at}", message["content"]
        if at and message["role"] == messages[at - 1]["role"]:
            yield f"{place}: roles must alternate"
        if not content:
            yield f"{place}: content must not be empty"

        for number, block in enumerate(content):
            yield from _block_problems(f"{place}.content.{number}", block)

        results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if sorted(results) != sorted(owed):
            yield f"{place}: `tool_use` ids and the `tool_result` blocks after them must pair: {owed}"
        if any(block["type"] != "tool_result" for block in content[: len(results)]):
            yield f"{place}: `tool_result` blocks must come first"

        owed = [block["id"] for block in content if block["type"] == "tool_use"]
        if used & set(owed) or len(set(owed)) < len(owed):
            yield f"{place}: `tool_use` ids must be unique"
        used |= set(owed)

        theirs = {"tool_use", "thinking", "redacted_thinking"}
        if message["role"] == "user" and theirs & {block["type"] for block in content}:
            yield f"{place}: only the assistant says that"
        if message["role"] == "assistant" and content and content[-1]["type"] in theirs - {"tool_use"}:
            yield f"{place}: The final block in an assistant message cannot be `thinking`"


def _block_problems(place: str, block: Any) -> Iterator[str]:
    match block:
        case {"type": "text", "text": str(text)}:
            if not text.strip():
                yield f"{place}: text content blocks must contain non-whitespace text"
        case {"type": "image", "source": {"type": "base64", "media_type": kind, "data": str()}}:
            if kind not in _PICTURES:
                yield f"{place}: media_type {kind} is not supported"
        case {"type": "thinking", "thinking": str(), "signature": str(signature)}:
            if not signature or "cache_control" in block:
                yield f"{place}: Invalid `signature` in `thinking` block, or a mark on it"
        case {"type": "redacted_thinking", "data": str(data)}:
            if not data or "cache_control" in block:
                yield f"{place}: Invalid `data` in `redacted_thinking` block, or a mark on it"
        case {"type": "tool_use", "id": str(call_id), "name": str(name), "input": dict()}:
            if not _NAME.fullmatch(call_id) or not _NAME.fullmatch(name):
                yield f"{place}: String should match pattern '^[a-zA-Z0-9_-]+$'"
        case {"type": "tool_result", "content": [_, *_] as parts}:
            for part in parts:
                yield from _block_problems(place, part)
            if block.get("is_error") and any(part["type"] != "text" for part in parts):
                yield f"{place}: all content must be type `text` if `is_error` is true"
        case _:
            yield f"{place}: Input should be a block, not {block}"


def _tool_problems(tools: Any) -> Iterator[str]:
    if tools is None:
        return

    if not tools:
        yield "tools: must not be empty"

    for at, tool in enumerate(tools):
        if not _NAME.fullmatch(tool["name"]) or tool["input_schema"].get("type") != "object":
            yield f"tools.{at}: a name or a schema that is none"


def _thinking_problems(body: Any) -> Iterator[str]:
    thinking = body.get("thinking")

    if thinking is None or thinking["type"] != "enabled":
        return

    if not 1024 <= thinking["budget_tokens"] < body["max_tokens"]:
        yield "thinking.budget_tokens must be at least 1024 and less than max_tokens"

    called = False

    for message in reversed(body["messages"]):
        first = message["content"][0]["type"]
        if message["role"] == "assistant":
            if first.endswith("thinking"):
                return
            called = True
        elif first != "tool_result":
            break

    if called:
        yield "Expected `thinking` or `redacted_thinking`, but found `tool_use`"


def _opening(chunk: Chunk) -> dict[str, Any]:
    match chunk:
        case TextDelta():
            return {"type": "text", "text": ""}
        case ToolCallDelta(_, call_id, name, _):
            return {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        case BlockEnd(block=Reasoning(opaque={"redacted_thinking": data})):
            return {"type": "redacted_thinking", "data": data}
        case _:
            return {"type": "thinking", "thinking": "", "signature": ""}


def _delta(index: int, kind: str, **said: str) -> bytes:
    return event_of("content_block_delta", index=index, delta={"type": kind, **said})
