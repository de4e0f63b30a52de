"""Reads the events of an OpenAI chat completion into chunks, one answer at a time.

Owns what the many servers that speak this format mean; their tool calls are told apart by `openai_calls`.
Bytes belong to `sse`, the connection to `sdk_provider`. Plain dicts all the way: a model built for
every delta would cost more than all the rest.

Rules.
1. A change from thinking to text, or to a tool call, opens a new block.
2. Usage and finish come last, whenever they arrive: a server may send them early, twice or never.
3. A server that has said why it finished has said everything, however untidily it hangs up.
"""

from collections.abc import Sequence
from typing import Any, Final

from agent_loop.chunks import (
    BlockEnd,
    Chunk,
    Finish,
    FinishKind,
    ReasoningDelta,
    TextDelta,
    Usage,
    UsageChunk,
)
from agent_loop.errors import ErrorKind, ProviderError
from agent_loop.llm.providers.endpoint import Endpoint
from agent_loop.llm.providers.event_json import event_value, text_in
from agent_loop.llm.providers.failures import cut, from_event, malformed, no_answer
from agent_loop.llm.providers.openai_calls import Calls
from agent_loop.llm.providers.openai_details import Details
from agent_loop.messages import Reasoning

DONE: Final = b"[DONE]"

_FINISH: Final[dict[str, FinishKind]] = {
    "stop": "stop",
    "length": "max-tokens",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "refusal": "refusal",
}

_FAILED: Final[dict[str, tuple[ErrorKind, str]]] = {
    "content_filter": ("content_filtered", "withheld the rest of the answer: its content filter stepped in"),
    "error": ("server", "failed on its side in the middle of the answer"),
    "insufficient_system_resource": ("overloaded", "ran out of capacity in the middle of the answer"),
}


class OpenAIAnswer:
    """One answer while it arrives.

    Attributes:
        done: Whether the end mark was read; what follows it is ignored.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.done = False
        self._endpoint = endpoint
        self._next_index = 0
        self._open_kind = ""
        self._open_index = 0
        self._calls = Calls()
        self._details = Details()
        self._thought_index: int | None = None
        self._usage: Any = None
        self._reason = ""
        self._refused = False
        self._seen = False

    @property
    def finished(self) -> bool:
        """Whether the server has said why it finished."""
        return bool(self._reason)

    def feed(self, event: bytes) -> Sequence[Chunk]:
        """The chunks of one event.

        Raises:
            ProviderError: The event reports a failure, or makes no sense.
        """
        if self.done:
            return ()

        self._seen = True

        if event == DONE:
            self.done = True
            return ()

        try:
            return self._chunks(event_value(event))
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

        if not self._reason:
            raise cut(self._endpoint)

        finish = Finish(self._finish_kind())
        end = self._thought_end()

        if self._usage is None:
            return (*end, finish)

        try:
            return (*end, UsageChunk(usage_in(self._usage)), finish)
        except (AttributeError, TypeError) as error:
            raise malformed(self._endpoint, "counts its tokens in a way that cannot be read") from error

    def _chunks(self, value: Any) -> Sequence[Chunk]:
        choices = value.get("choices")

        if (not choices or "error" in value) and (
            error := value.get("error") or (value.get("object") == "error" and value)
        ):
            raise from_event(self._endpoint, error)

        if usage := value.get("usage"):
            self._usage = usage

        # The last word of some servers has no choices, and says beside them why it is the last.
        choice = choices[0] if choices else value

        if reason := choice.get("finish_reason"):
            self._reason = str(reason)

        delta = choice.get("delta")

        if not delta:
            return ()

        if len(delta) == 1 and type(text := delta.get("content")) is str:
            # Nearly every event is this one; the general way costs as much again.
            return (TextDelta(self._block("text"), text),) if text else ()

        chunks: list[Chunk] = []
        text = delta.get("reasoning_content") or delta.get("reasoning")

        if details := delta.get("reasoning_details"):
            # Gateways say the same words in both places, or in this one alone.
            said = self._details.feed(details)
            text = text or said

        if text:
            self._thought_index = self._block("reasoning")
            chunks.append(ReasoningDelta(self._thought_index, text_in(text)))

        if text := delta.get("content"):
            chunks.append(TextDelta(self._block("text"), text_in(text)))

        if text := delta.get("refusal"):
            self._refused = True
            chunks.append(TextDelta(self._block("text"), text_in(text)))

        if calls := delta.get("tool_calls"):
            self._open_kind = ""

            for place, call in enumerate(calls):
                self._next_index = self._calls.feed(place, call, self._next_index, chunks)

        return chunks

    def _thought_end(self) -> Sequence[Chunk]:
        """What the thoughts must be given back with, which is known when all of it has come."""
        try:
            opaque = self._details.opaque()
        except ValueError as error:
            raise malformed(self._endpoint, "signed its thoughts in a way that cannot be read") from error

        if opaque is None:
            return ()

        if self._thought_index is None:
            return (BlockEnd(self._next_index, Reasoning("", opaque)),)

        return (BlockEnd(self._thought_index, opaque=opaque),)

    def _block(self, kind: str) -> int:
        """The index of the open block, if it is of that kind, else of a new one."""
        if kind != self._open_kind:
            self._open_kind = kind
            self._open_index = self._next_index
            self._next_index += 1

        return self._open_index

    def _finish_kind(self) -> FinishKind:
        if self._reason in _FAILED:
            raise self._failed(*_FAILED[self._reason])

        kind = "refusal" if self._refused else _FINISH.get(self._reason)

        if kind is None and self._next_index == 0:
            raise self._failed("unknown", f"gave no answer, for the reason {self._reason[:60]!r}")

        if kind in ("max-tokens", "refusal"):
            return kind

        # Servers say "stop" beside tool calls, "tool_calls" without any, and words of their own.
        return "tool-calls" if self._calls else "stop"

    def _failed(self, kind: ErrorKind, what: str) -> ProviderError:
        return ProviderError(kind, f"{self._endpoint.name} {what}", provider=self._endpoint.name)


def usage_in(usage: dict[str, Any]) -> Usage:
    """Disjoint counts out of OpenAI's, where the prompt includes cached tokens and the answer reasoning."""
    prompt = usage.get("prompt_tokens_details") or {}
    answer = usage.get("completion_tokens_details") or {}
    cached = prompt.get("cached_tokens") or usage.get("prompt_cache_hit_tokens") or 0
    reasoning = answer.get("reasoning_tokens") or 0

    return Usage(
        input_tokens=max(0, (usage.get("prompt_tokens") or 0) - cached),
        output_tokens=max(0, (usage.get("completion_tokens") or 0) - reasoning),
        cache_read_tokens=cached,
        reasoning_tokens=reasoning,
    )
