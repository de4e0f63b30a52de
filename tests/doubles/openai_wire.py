"""Speaks OpenAI's chat completions from the endpoint's side, and minds the manners the real one minds.

The other direction of `llm.providers.openai_*`: chunks become events here. Pure; sockets belong to
`provider_server`.
"""

import json
from collections.abc import Mapping, Sequence
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
    UsageChunk,
)

DONE = b"data: [DONE]"

FINISH: Mapping[FinishKind, str] = {
    "stop": "stop",
    "tool-calls": "tool_calls",
    "max-tokens": "length",
    "refusal": "refusal",
}


def events_of(chunks: Sequence[Chunk], *, done: bool = True) -> list[bytes]:
    """The events that say these chunks, as an endpoint would say them."""
    calls: dict[int, int] = {}
    events = [event_of(delta={"role": "assistant", "content": ""})]

    for chunk in chunks:
        match chunk:
            case TextDelta(text=text):
                events.append(event_of(delta={"content": text}))
            case ReasoningDelta(text=text):
                events.append(event_of(delta={"reasoning_content": text}))
            case ToolCallDelta(index, call_id, name, arguments):
                place = calls.setdefault(index, len(calls))
                events.append(event_of(delta={"tool_calls": [_call(place, call_id, name, arguments)]}))
            case UsageChunk(usage):
                events.append(
                    event_of(
                        usage={
                            "prompt_tokens": usage.input_tokens + usage.cache_read_tokens,
                            "completion_tokens": usage.output_tokens + usage.reasoning_tokens,
                            "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
                            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
                        }
                    )
                )
            case Finish(kind):
                events.append(event_of(delta={}, finish_reason=FINISH[kind]))
            case BlockStart() | BlockEnd():
                raise ValueError(f"OpenAI has no word for {chunk}")

    return [*events, DONE] if done else events


def event_of(*, delta: Any = None, finish_reason: str | None = None, usage: Any = None, **more: Any) -> bytes:
    """One event; without `delta` it has no choices."""
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "fake", **more}
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    return data_of(json.dumps({**head, "choices": choices, "usage": usage}))


def data_of(text: str) -> bytes:
    """An event with this text, one `data` field a line."""
    return "\n".join(f"data: {line}" for line in text.split("\n")).encode()


def error_body(code: str | None, message: str, kind: str = "invalid_request_error") -> bytes:
    """The body of an answer with an error status."""
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}}).encode()


def problem(body: Any) -> str | None:
    """What the real endpoint would refuse about a request, in its words; None when it would not."""
    owed: list[str] = []

    for at, message in enumerate(body["messages"]):
        role = message["role"]

        if role == "tool":
            if message["tool_call_id"] not in owed:
                return f"messages[{at}]: role 'tool' must follow a message with 'tool_calls' that has its id"
            if not message["content"]:
                return f"messages[{at}]: content is empty"
            owed.remove(message["tool_call_id"])
            continue

        if owed:
            return f"messages[{at}]: 'tool_calls' must be followed by tool messages for {', '.join(owed)}"

        calls = message.get("tool_calls")

        if calls is not None:
            owed = [call["id"] for call in calls]
            if not calls or len(set(owed)) < len(owed):
                return f"messages[{at}]: tool_calls must not be empty, nor use an id twice"
            for call in calls:
                try:
                    json.loads(call["function"]["arguments"])
                except ValueError:
                    return f"messages[{at}]: the arguments of {call['id']} are not JSON"
        elif message["content"] is None:
            return f"messages[{at}]: expected a string for content, got null"

    if owed:
        return f"'tool_calls' must be followed by tool messages for {', '.join(owed)}"

    return "tools must not be empty" if body.get("tools") == [] else None


def _call(place: int, call_id: str, name: str, arguments: str) -> dict[str, Any]:
    function: dict[str, Any] = {"arguments": arguments}
    call: dict[str, Any] = {"index": place, "function": function}

    if name:
        function["name"] = name
    if call_id:
        call |= {"id": call_id, "type": "function"}

    return call
