"""Reads the events of an Anthropic message into chunks, one answer at a time.

Bytes belong to `sse`, the connection to `sdk_provider`. Plain dicts all the way, as for OpenAI.

Rules.
1. The API numbers its blocks, and so do the chunks; blocks nobody here asked for are passed over.
2. The signature of a thought comes when it ends, and ends it; a redacted thought has nothing but that.
3. Counts come in pieces, each the total so far; usage and finish come last.
4. Only `message_stop` says that the answer is whole.
"""

from collections.abc import Sequence
from typing import Any, Final

import orjson

from agent_loop.chunks import (
    BlockEnd,
    Chunk,
    Finish,
    FinishKind,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from agent_loop.errors import ProviderError
from agent_loop.jsonvalue import freeze_json
from agent_loop.llm.providers.endpoint import Endpoint
from agent_loop.llm.providers.event_json import event_value, number_in, text_in
from agent_loop.llm.providers.failures import cut, from_event, malformed, no_answer
from agent_loop.messages import Json, Reasoning

_FINISH: Final[dict[str, FinishKind]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "tool_use": "tool-calls",
    "max_tokens": "max-tokens",
    "model_context_window_exceeded": "max-tokens",
    "refusal": "refusal",
}


class AnthropicAnswer:
    """One answer while it arrives.

    Attributes:
        done: Whether the end mark was read; what follows it is ignored.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.done = False
        self._endpoint = endpoint
        self._open: dict[int, _Thought | _Call] = {}
        self._usage: Json = {}
        self._reason = ""
        self._called = False
        self._answered = False
        self._seen = False

    @property
    def finished(self) -> bool:
        """Whether the end mark was read."""
        return self.done

    def feed(self, event: bytes) -> Sequence[Chunk]:
        """The chunks of one event.

        Raises:
            ProviderError: The event reports a failure, or makes no sense.
        """
        if self.done:
            return ()

        self._seen = True

        try:
            value = event_value(event)
            kind = value["type"]

            if kind == "content_block_delta":
                return self._delta(number_in(value["index"]), value["delta"])

            return self._between(kind, value)
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise malformed(self._endpoint, "sent an event that cannot be read") from error

    def ending(self, stray: bytes = b"") -> Sequence[Chunk]:
        """Usage and finish, once the stream has ended.

        Args:
            stray: What came instead of events.
        Raises:
            ProviderError: The answer is not whole, or there is none.
        """
        if not self._seen:
            raise no_answer(self._endpoint, stray)

        if not self.done:
            raise cut(self._endpoint)

        finish = Finish(self._finish_kind())

        if not self._usage:
            return (finish,)

        try:
            return UsageChunk(usage_in(self._usage)), finish
        except (AttributeError, TypeError) as error:
            raise malformed(self._endpoint, "counts its tokens in a way that cannot be read") from error

    def _delta(self, index: int, delta: Json) -> Sequence[Chunk]:
        # Nearly every event is one of text, so that comes first.
        match delta["type"]:
            case "text_delta":
                return self._text(index, delta["text"])
            case "thinking_delta":
                return self._thought(index, delta["thinking"])
            case "signature_delta":
                self._as_thought(index).signature += text_in(delta["signature"])
            case "input_json_delta" if isinstance(call := self._open.get(index), _Call):
                arguments = text_in(delta["partial_json"])
                call.input = "" if arguments else call.input
                return (ToolCallDelta(index, "", "", arguments),) if arguments else ()

        return ()

    def _between(self, kind: str, value: Json) -> Sequence[Chunk]:
        """What is no delta; a ping, and whatever the API will think of, says nothing."""
        match kind:
            case "content_block_start":
                return self._start(number_in(value["index"]), value["content_block"])
            case "content_block_stop":
                return self._stop(number_in(value["index"]))
            case "message_start":
                self._count(value["message"].get("usage"))
            case "message_delta":
                self._reason = text_in(value["delta"].get("stop_reason") or "") or self._reason
                self._count(value.get("usage"))
            case "message_stop":
                self.done = True
            case "error":
                raise from_event(self._endpoint, value["error"])

        return ()

    def _start(self, index: int, block: Json) -> Sequence[Chunk]:
        match block["type"]:
            case "text":
                return self._text(index, block.get("text") or "")
            case "thinking":
                self._as_thought(index).signature = text_in(block.get("signature") or "")
                return self._thought(index, block.get("thinking") or "")
            case "redacted_thinking":
                self._answered = True
                opaque = freeze_json({"redacted_thinking": text_in(block["data"])})
                return (BlockEnd(index, Reasoning("", opaque)),)
            case "tool_use":
                self._called = self._answered = True
                # Some servers give the arguments whole, here; the API itself says `{}` and then sends them.
                given = block.get("input")
                self._open[index] = _Call(orjson.dumps(given).decode() if given else "")
                return (ToolCallDelta(index, text_in(block["id"]), text_in(block["name"]), ""),)

        return ()

    def _stop(self, index: int) -> Sequence[Chunk]:
        match self._open.pop(index, None):
            case _Call(input=given) if given:
                return (ToolCallDelta(index, "", "", given),)
            case _Thought(signature=signature, said=said) if signature:
                self._answered = True
                opaque = freeze_json({"signature": signature})
                return (BlockEnd(index, opaque=opaque) if said else BlockEnd(index, Reasoning("", opaque)),)

        return ()

    def _text(self, index: int, text: Any) -> Sequence[Chunk]:
        if not text_in(text):
            return ()

        self._answered = True
        return (TextDelta(index, text),)

    def _thought(self, index: int, text: Any) -> Sequence[Chunk]:
        if not text_in(text):
            return ()

        self._answered = self._as_thought(index).said = True
        return (ReasoningDelta(index, text),)

    def _as_thought(self, index: int) -> "_Thought":
        thought = self._open.setdefault(index, _Thought())

        if not isinstance(thought, _Thought):
            raise TypeError("a tool call that thinks")

        return thought

    def _count(self, usage: Json | None) -> None:
        # A total cannot shrink: servers that count nothing in one of the places send zeros there.
        self._usage |= {name: count for name, count in (usage or {}).items() if count}

    def _finish_kind(self) -> FinishKind:
        kind = _FINISH.get(self._reason)

        if kind is None and not self._answered:
            what = f"gave no answer, for the reason {self._reason[:60]!r}"
            raise ProviderError("unknown", f"{self._endpoint.name} {what}", provider=self._endpoint.name)

        if kind in ("max-tokens", "refusal"):
            return kind

        # Servers that imitate the API say "end_turn" beside tool calls.
        return "tool-calls" if self._called else "stop"


def usage_in(usage: Json) -> Usage:
    """Our counts out of Anthropic's: all of them are disjoint but thoughts, which are part of the output."""
    reasoning = number_in((usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0)

    return Usage(
        input_tokens=number_in(usage.get("input_tokens", 0)),
        output_tokens=max(0, number_in(usage.get("output_tokens", 0)) - reasoning),
        cache_read_tokens=number_in(usage.get("cache_read_input_tokens", 0)),
        cache_write_tokens=number_in(usage.get("cache_creation_input_tokens", 0)),
        reasoning_tokens=reasoning,
    )


class _Thought:
    """Thinking that has not ended; `said` once there was any text of it."""

    __slots__ = ("said", "signature")

    def __init__(self) -> None:
        self.signature = ""
        self.said = False


class _Call:
    """A tool call that has not ended; `input` is what it began with, until anything else comes."""

    __slots__ = ("input",)

    def __init__(self, given: str) -> None:
        self.input = given
