"""A store in memory that can be slow, stuck or broken, and remembers what it was asked to write."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio
import anyio.lowlevel

from agent_loop.errors import Duplicate, NotFound, StoreError
from agent_loop.events.facts import AssistantRun, LoggedFact, LogRow, facts_in
from agent_loop.session.header import SessionHeader


@dataclass(frozen=True)
class Write:
    """One append that was asked for; `count` facts from place `first_seq` on."""

    session_id: str
    first_seq: int
    count: int
    durable: bool


class MemoryStore:
    """Keeps sessions as long as the test.

    Attributes:
        writes: Every append, also a failed one, in order.
        failing: What appends raise; None while the store is well.
        at_append: Awaited inside every append, before anything is kept.
    """

    def __init__(self) -> None:
        self.writes: list[Write] = []
        self.failing: Exception | None = None
        self.at_append: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint
        self._headers: dict[str, SessionHeader] = {}
        self._rows: dict[str, list[LogRow]] = {}
        self._grown = anyio.Event()

    async def create(self, header: SessionHeader) -> None:
        await anyio.lowlevel.checkpoint()
        if header.id in self._headers:
            raise Duplicate(f"Session {header.id} is stored already.")
        self._headers[header.id] = header
        self._rows[header.id] = []

    async def append(self, session_id: str, rows: Sequence[LogRow], *, first_seq: int, durable: bool) -> None:
        count = sum(map(facts_in, rows))
        self.writes.append(Write(session_id, first_seq, count, durable))
        await self.at_append()
        if self.failing is not None:
            raise self.failing
        if first_seq != self.count(session_id):
            raise ValueError(
                f"session {session_id} goes on at seq {self.count(session_id)}, not at {first_seq}"
            )
        self._rows[session_id] += rows
        self._grown.set()
        self._grown = anyio.Event()

    async def load(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        await anyio.lowlevel.checkpoint()
        if session_id not in self._headers:
            raise NotFound(f"There is no session {session_id}.")
        return self._headers[session_id], list(self._rows[session_id])

    async def aclose(self) -> None:
        """Nothing to close."""

    def count(self, session_id: str) -> int:
        """How many facts of a session are kept."""
        return sum(map(facts_in, self._rows[session_id]))

    def facts(self, session_id: str) -> list[LoggedFact]:
        """The facts kept of a session, unfolded."""
        found: list[LoggedFact] = []
        for row in self._rows[session_id]:
            if isinstance(row, AssistantRun):
                found += row.facts_from(0)
            else:
                found.append(row)
        return found

    async def grows_to(self, session_id: str, count: int) -> None:
        """Wait until so many facts are kept."""
        while self.count(session_id) < count:
            await self._grown.wait()


def full_disk() -> StoreError:
    return StoreError("io", "the disk is full")
