"""A model that answers in this process, from a list, and remembers what it was asked."""

from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Literal

import anyio
import anyio.lowlevel

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
from agent_loop.llm.provider import ModelRequest

HANG: Literal["hang"] = "hang"
PARTIAL = "partial"
USAGE = Usage(input_tokens=10, output_tokens=2)

Entry = Sequence[Chunk | BaseException] | Callable[[ModelRequest], Iterable[Chunk]] | BaseException | str
"""One answer: its chunks (an exception among them is raised there), a function of the request, an
exception to raise at once, or HANG: `partial`, and then nothing until the call is cancelled."""


class ScriptedModel:
    """A provider; an exhausted script fails in words.

    Attributes:
        entries: The answers still to come; a test may add to them at any time.
        requests: Every request so far, also of calls that failed.
        hanging: Set while a HANG waits.
        closed: How many answers were closed, by whoever.
        at_point: Awaited before every chunk and at both ends; a test's way into the stream.
    """

    def __init__(self, *entries: Entry, name: str = "script") -> None:
        self.name = name
        self.entries: deque[Entry] = deque(entries)
        self.requests: list[ModelRequest] = []
        self.hanging = anyio.Event()
        self.closed = 0
        self.at_point: Callable[[str], Awaitable[object]] = _pass

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        self.requests.append(request)
        try:
            await self.at_point("call")
            if not self.entries:
                raise AssertionError("script exhausted")
            entry = self.entries.popleft()
            if entry == HANG:
                yield TextDelta(0, PARTIAL)
                self.hanging.set()
                await anyio.sleep_forever()
            for item in _items(entry, request):
                await self.at_point("chunk")
                if isinstance(item, BaseException):
                    raise item
                yield item
            await self.at_point("end")
        finally:
            self.hanging = anyio.Event()
            self.closed += 1

    async def load(self) -> None:
        """Nothing to wait for."""

    async def models(self) -> tuple[str, ...]:
        return ()

    async def aclose(self) -> None:
        """Nothing to give back."""


def text(words: str) -> list[Chunk]:
    """A whole answer: the text, one delta a character, what it cost, the end."""
    return answer(*said(words))


def said(words: str, index: int = 0) -> list[Chunk]:
    """One text block."""
    return [BlockStart(index, "text"), *(TextDelta(index, char) for char in words), BlockEnd(index)]


def thought(words: str, index: int = 0) -> list[Chunk]:
    """One reasoning block."""
    deltas = [ReasoningDelta(index, char) for char in words]
    return [BlockStart(index, "reasoning"), *deltas, BlockEnd(index)]


def call(call_id: str, name: str = "work", arguments: str = "{}", index: int = 1) -> list[Chunk]:
    """One tool call, its arguments in two pieces."""
    return [
        BlockStart(index, "tool-call"),
        ToolCallDelta(index, call_id, name, arguments[:1]),
        ToolCallDelta(index, "", "", arguments[1:]),
        BlockEnd(index),
    ]


def calls(*wanted: tuple[str, str]) -> list[Chunk]:
    """A whole answer that asks for tools: pairs of call id and arguments of the tool `work`."""
    blocks = [call(call_id, "work", arguments, at) for at, (call_id, arguments) in enumerate(wanted, 1)]
    return answer(*(chunk for block in blocks for chunk in block), finish="tool-calls")


def answer(*chunks: Chunk, finish: FinishKind = "stop") -> list[Chunk]:
    """The chunks, what they cost, and the end."""
    return [*chunks, UsageChunk(USAGE), Finish(finish)]


def _items(entry: Entry, request: ModelRequest) -> Iterable[Chunk | BaseException]:
    if isinstance(entry, BaseException):
        return [entry]
    if callable(entry):
        return entry(request)
    assert not isinstance(entry, str)
    return entry


async def _pass(_: str) -> None:
    await anyio.lowlevel.checkpoint()
