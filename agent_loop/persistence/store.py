"""The store seam: where session logs are kept.

Every method raises `StoreError` when the store itself fails (`io`), a log is damaged (`corrupt`), of
a format this one cannot read (`version`), or written by another process (`locked`); `NotFound` only
when there truly is no such session. All are safe to call concurrently for different sessions; for one
session the recorder calls them one after another.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from agent_loop.events.facts import LoggedFact, LogRow
from agent_loop.record import record
from agent_loop.session.header import SessionHeader


@record
class SessionSummary:
    """A stored session as a list shows it.

    Attributes:
        updated_at: Milliseconds since the epoch of its last write.
    """

    header: SessionHeader
    title: str
    updated_at: int


@record
class Page:
    """Part of a list, newest first; `cursor` asks for what follows, None at the end."""

    sessions: tuple[SessionSummary, ...]
    cursor: str | None


class Store(Protocol):
    """Keeps session logs; its implementations pass one contract suite.

    One process at a time writes a session: `create` and `load` claim it, `release` and the end of the
    process give it back.
    """

    async def create(self, header: SessionHeader, check: Callable[[], object] | None = None) -> None:
        """Make the session known durably enough to survive this process, and claim it.

        Args:
            check: May block; called before anything is stored, by the thread that stores it, because beside
                a stream each way to a thread and back costs milliseconds. What it raises is raised here.
        Raises:
            Duplicate: The id is stored already.
        """

    async def append(self, session_id: str, rows: Sequence[LogRow], *, first_seq: int, durable: bool) -> None:
        """Write rows, the first at place `first_seq`, behind what is stored, all or none of them.

        Args:
            durable: Return only when the disk has them; otherwise surviving this process is enough.
        Raises:
            NotFound: The session is not claimed.
            ValueError: `first_seq` is not the next place, or the rows are not contiguous from it.
        """

    async def load(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        """Claim a session and give what is stored of it, up to where a crash tore it.

        Runs may come packed or not, whatever they were written as.

        Raises:
            NotFound: No such session (an id this store could never have made included).
            StoreError: `locked`, `corrupt` (damage with a whole turn behind it), `version`.
        """

    async def peek(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        """The same without a claim, for readers; raises what `load` raises but for `locked`."""

    async def repair(self, session_id: str, closers: Sequence[LoggedFact]) -> None:
        """Cut what a crash tore off the end of a loaded log and add `closers`, durably; both may be none."""

    async def release(self, session_id: str) -> None:
        """Give up the claim. Idempotent."""

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> Page:
        """Stored sessions with at least one turn, newest first.

        Args:
            cwd: Only those that work in this directory, by real path.
        Raises:
            ValueError: The cursor is none of ours.
        """

    async def delete(self, session_id: str) -> bool:
        """Forget a session; whether there was one.

        Raises:
            StoreError: `locked`, another process is at it.
        """

    async def aclose(self) -> None:
        """Give up every claim. Idempotent."""
