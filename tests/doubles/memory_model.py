"""A model inside the test: the scripted provider's own language, directed by the test itself.

Owns which line a call gets and when a held one goes on. What the items of a line mean belongs to
`agent_loop.llm.providers.scripted`.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import anyio

from agent_loop.chunks import Chunk
from agent_loop.llm.provider import ModelRequest
from agent_loop.llm.providers.scripted import Scripted
from agent_loop.messages import text_of

Item = dict[str, Any]

STOP: Item = {"finish": "stop"}
CALLS: Item = {"finish": "tool_calls"}
HANG: Item = {"hang": True}
WAIT_S = 5.0


class Bell:
    """Whoever waits for anything of a test waits here; every piece of news rings it."""

    def __init__(self) -> None:
        self._rung = anyio.Event()

    def ring(self) -> None:
        """There is news."""
        rung, self._rung = self._rung, anyio.Event()
        rung.set()

    async def wait(self) -> None:
        """Until the next ring."""
        await self._rung.wait()


class MemoryModel(Scripted):
    """Answers call after call with the lines given, then with `Done.`

    Attributes:
        requests: What was asked, oldest first.
        running: Calls that have begun and not ended.
        hanging: Those of them that will say nothing more.
    """

    def __init__(self, *answers: Sequence[Item]) -> None:
        super().__init__("scripted", "(in memory)")
        self._loaded = True
        self._director = self
        self._held: dict[str, anyio.Event] = {}
        self.bell = Bell()
        self.requests: list[ModelRequest] = []
        self.running: set[int] = set()
        self.hanging: set[int] = set()
        self.says(*answers)

    def says(self, *answers: Sequence[Item]) -> None:
        """Add lines: the items of one answer each."""
        self._lines.extend({"do": list(items)} for items in answers)

    @property
    def prompts(self) -> list[str]:
        """The newest text each call saw."""
        return [text_of(request.messages[-1].content) for request in self.requests]

    def release(self, name: str) -> None:
        """Let the call held under `name` go on."""
        self._held[name].set()

    def holds(self, name: str) -> bool:
        """Whether a call waits for that release."""
        return name in self._held

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """See `Scripted.stream`."""
        self.requests.append(request)
        if len(self._lines) < len(self.requests):
            self.says([{"text": "Done."}, STOP])
        stream = super().stream(request)
        try:
            async for chunk in stream:
                yield chunk
        finally:
            await stream.aclose()

    # What the scripted provider asks of its director.

    async def begin(self, session_id: str) -> int:
        call = len(self.requests) - 1
        self.running.add(call)
        self.bell.ring()
        return call

    async def line(self, call: int) -> int:
        return call

    async def hold(self, call: int, name: str) -> None:
        self._held[name] = anyio.Event()
        self.bell.ring()
        try:
            await self._held[name].wait()
        finally:
            del self._held[name]

    async def tell(self, call: int, event: str, **data: Any) -> None:
        if event == "end":
            self.running.discard(call)
            self.hanging.discard(call)
        elif event == "hang":
            self.hanging.add(call)
        self.bell.ring()

    async def aclose(self) -> None:
        """Nothing to give back."""


def says(*texts: str) -> list[Item]:
    """An answer of these deltas."""
    return [*({"text": text} for text in texts), STOP]


def calls(*tools: tuple[str, str, Item]) -> list[Item]:
    """An answer that asks for tools: id, name, arguments each."""
    return [*({"tool": name, "id": call_id, "args": args} for call_id, name, args in tools), CALLS]
