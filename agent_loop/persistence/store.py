"""The store seam: where session logs are kept.

Every method raises `StoreError` (kinds `io`, `corrupt`, `version`, `unclosed`) when the store itself
fails; `NotFound` only when there truly is no such session. All are safe to call concurrently for
different sessions; for one session the recorder calls them one after another.
"""

from collections.abc import Sequence
from typing import Protocol

from agent_loop.events.facts import LogRow
from agent_loop.session.header import SessionHeader


class Store(Protocol):
    """Keeps session logs; its implementations pass one contract suite."""

    async def create(self, header: SessionHeader) -> None:
        """Make the session known durably enough to survive this process.

        Raises:
            Duplicate: The id is stored already.
        """

    async def append(self, session_id: str, rows: Sequence[LogRow], *, first_seq: int, durable: bool) -> None:
        """Write rows, the first at place `first_seq`, behind what is stored, all or none of them.

        Args:
            durable: Return only when the disk has them; otherwise surviving this process is enough.
        Raises:
            ValueError: `first_seq` is not the next place, or the facts are not contiguous from it.
        """

    async def load(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        """Everything stored of a session; runs may come packed or not, whatever they were written as.

        Raises:
            NotFound: No such session (an id this store could never have made included).
            StoreError: `unclosed` for a log that ends inside a turn or a torn row, the file untouched;
                `corrupt` for damage; `version` for a format this one cannot read.
        """

    async def aclose(self) -> None:
        """Close files. Idempotent."""
