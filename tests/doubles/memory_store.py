"""A store in memory that can be slow, stuck or broken, and remembers what it was asked to write."""

import os
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel

from agent_loop.errors import StoreError
from agent_loop.events.facts import (
    AssistantRun,
    LoggedFact,
    LogRow,
    SessionTitle,
    TurnStart,
    UserMessage,
    facts_in,
)
from agent_loop.events.facts_json import row_to_json
from agent_loop.messages import text_of
from agent_loop.persistence.listing import cursor_of, place_of
from agent_loop.persistence.rows import (
    checked_places,
    line,
    locked,
    not_open,
    require_id,
    require_new_id,
    taken,
    unknown,
)
from agent_loop.persistence.store import Page, SessionSummary
from agent_loop.session.header import SessionHeader
from agent_loop.session.titles import title_from


@dataclass(frozen=True)
class Write:
    """One append that was asked for; `count` facts from place `first_seq` on."""

    session_id: str
    first_seq: int
    count: int
    durable: bool


@dataclass
class Kept:
    """One session as a `Shelf` holds it; `owner` has claimed it."""

    header: SessionHeader
    owner: "MemoryStore | None"
    updated_at: int
    rows: list[LogRow] = field(default_factory=list)


Shelf = dict[str, Kept]
"""What several stores may share, as processes share a disk."""


class MemoryStore:
    """Keeps sessions as long as the test, or as long as its shelf.

    Attributes:
        writes: Every append, also a failed one, in order.
        failing: What appends and creates raise; None while the store is well.
        at_append: Awaited inside every append, before anything is kept.
    """

    def __init__(self, shelf: Shelf | None = None) -> None:
        self.writes: list[Write] = []
        self.failing: Exception | None = None
        self.at_append: Callable[[], Awaitable[object]] = anyio.lowlevel.checkpoint
        self._shelf: Shelf = {} if shelf is None else shelf
        self._grown = anyio.Event()

    async def create(self, header: SessionHeader, check: Callable[[], object] | None = None) -> None:
        require_new_id(header.id)
        await anyio.lowlevel.checkpoint()
        if check is not None:
            check()
        if self.failing is not None:
            raise self.failing
        if header.id in self._shelf:
            raise taken(header.id)
        self._shelf[header.id] = Kept(header, self, _now())

    async def append(self, session_id: str, rows: Sequence[LogRow], *, first_seq: int, durable: bool) -> None:
        batch = tuple(rows)
        self.writes.append(Write(session_id, first_seq, sum(map(facts_in, batch)), durable))
        await self.at_append()
        self._put(session_id, batch, first_seq)

    async def load(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        found = await self.peek(session_id)
        kept = self._shelf[session_id]
        if kept.owner not in (None, self):
            raise locked(session_id)
        kept.owner = self
        return found

    async def peek(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        require_id(session_id)
        await anyio.lowlevel.checkpoint()
        if session_id not in self._shelf:
            raise unknown(session_id)
        return self._shelf[session_id].header, list(self._shelf[session_id].rows)

    async def repair(self, session_id: str, closers: Sequence[LoggedFact]) -> None:
        await anyio.lowlevel.checkpoint()
        self._put(session_id, tuple(closers), self._next_seq(session_id))

    async def release(self, session_id: str) -> None:
        kept = self._shelf.get(session_id)
        if kept is not None and kept.owner is self:
            kept.owner = None

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> Page:
        after = None if cursor is None else place_of(cursor)
        places = sorted(
            ((it.updated_at, it.header.id) for it in self._shelf.values() if _is_listed(it, cwd)),
            reverse=True,
        )
        rest = [place for place in places if after is None or place < after]
        page = tuple(
            SessionSummary(self._shelf[id].header, _title(self._shelf[id].rows), at)
            for at, id in rest[:limit]
        )
        return Page(page, cursor_of(*rest[limit - 1]) if len(rest) > limit else None)

    async def delete(self, session_id: str) -> bool:
        kept = self._shelf.get(session_id)
        if kept is None:
            return False
        if kept.owner not in (None, self):
            raise locked(session_id)
        del self._shelf[session_id]
        return True

    async def aclose(self) -> None:
        for session_id in self._shelf:
            await self.release(session_id)

    def count(self, session_id: str) -> int:
        """How many facts of a session are kept."""
        return sum(map(facts_in, self._shelf[session_id].rows))

    def facts(self, session_id: str) -> list[LoggedFact]:
        """The facts kept of a session, unfolded."""
        found: list[LoggedFact] = []
        for row in self._shelf[session_id].rows:
            found += row.facts_from(0) if isinstance(row, AssistantRun) else [row]
        return found

    async def grows_to(self, session_id: str, count: int) -> None:
        """Wait until so many facts are kept."""
        while self.count(session_id) < count:
            await self._grown.wait()

    def _next_seq(self, session_id: str) -> int:
        kept = self._shelf.get(session_id)
        if kept is None or kept.owner is not self:
            raise not_open(session_id)
        return self.count(session_id)

    def _put(self, session_id: str, batch: tuple[LogRow, ...], first_seq: int) -> None:
        next_seq = self._next_seq(session_id)
        if self.failing is not None:
            raise self.failing
        checked_places(session_id, batch, first_seq, next_seq)
        for row in batch:
            line(row_to_json(row), f"fact {row.seq}, {row.TYPE},")
        if batch:
            kept = self._shelf[session_id]
            kept.rows += batch
            kept.updated_at = _now()
        self._grown.set()
        self._grown = anyio.Event()


def full_disk() -> StoreError:
    return StoreError("io", "the disk is full")


def _now() -> int:
    return time.time_ns() // 1_000_000


def _is_listed(kept: Kept, cwd: str | None) -> bool:
    if not any(isinstance(row, TurnStart) for row in kept.rows):
        return False
    if cwd is None:
        return True
    return kept.header.cwd is not None and os.path.realpath(kept.header.cwd) == os.path.realpath(cwd)


def _title(rows: Sequence[LogRow]) -> str:
    named = [row.title for row in rows if isinstance(row, SessionTitle)]
    said = [title_from(text_of(row.content)) for row in rows if isinstance(row, UserMessage)]
    return named[-1] if named else next(filter(None, said), "")
