"""The recorder: brings a live log to its store, behind the loop's back but never behind its checkpoints.

It is no listener: woken by growth, it reads the log by cursor. So a slow or failing disk costs an
append nothing, nothing is forgotten until the store has it, and a later flush brings what an earlier
one could not.
"""

import logging

import anyio

from agent_loop.errors import in_words
from agent_loop.events.bus import Bus
from agent_loop.events.moments import Checkpoint
from agent_loop.persistence.store import Store
from agent_loop.session.sessions import Session

log = logging.getLogger(__name__)

WRITE_BEHIND_S = 0.2
RETRY_S = 2.0
"""How long a failing disk is left alone while nothing new is logged."""
CLOSE_GRACE_S = 5.0


class Recorder:
    """One session's way to disk."""

    def __init__(self, store: Store, session: Session, bus: Bus, *, stored: int) -> None:
        """Begin to listen.

        Args:
            stored: How many of the session's facts the store has already.
        """
        self._store = store
        self._session = session
        self._cursor = stored
        self._tried = stored
        self._synced = stored
        self._lock = anyio.Lock()
        self._closing = anyio.Event()
        self._grown = anyio.Event()
        self._grown.set()
        self._undo = bus.on(Checkpoint, self._checkpoint)

    async def run(self) -> None:
        """Write what is new at most WRITE_BEHIND_S after it was logged, until closed."""
        while not self._closing.is_set():
            await self._growth()
            with anyio.move_on_after(WRITE_BEHIND_S):
                await self._closing.wait()
            try:
                await self.flush(durable=False)
            except Exception as error:
                log.warning("session %s: %s; kept in memory", self._session.id, in_words(error))

    async def flush(self, *, durable: bool) -> None:
        """Bring everything logged so far to the store.

        Raises:
            StoreError: It could not; nothing is lost, the next flush tries again.
        """
        async with self._lock:
            self._tried = end = self._session.log.next_seq
            # Whatever wrote the facts before (the write-behind, a request's checkpoint) did not sync them.
            if end == self._cursor and not (durable and self._synced < end):
                return
            rows = list(self._session.log.rows_since(self._cursor))
            await self._store.append(self._session.id, rows, first_seq=self._cursor, durable=durable)
            self._cursor = end
            if durable:
                self._synced = end

    async def close(self) -> None:
        """Flush for the last time and stop listening. Bounded; a failure is logged."""
        self._undo()
        self._closing.set()
        self._grown.set()
        with anyio.move_on_after(CLOSE_GRACE_S, shield=True) as scope:
            try:
                await self.flush(durable=True)
            except Exception as error:
                log.error(
                    "session %s: its last facts could not be saved: %s", self._session.id, in_words(error)
                )
        if scope.cancelled_caught:
            log.error(
                "session %s: its last facts were not saved within %s s", self._session.id, CLOSE_GRACE_S
            )

    async def _growth(self) -> None:
        """Wait for a fact that no flush has tried to bring yet, for the end, or to try a failed one again."""
        if self._session.log.next_seq > self._tried or self._closing.is_set():
            return
        if self._grown.is_set():
            self._grown = anyio.Event()
            self._session.log.wake_once(self._grown.set)
        with anyio.move_on_after(RETRY_S if self._cursor < self._tried else None):
            await self._grown.wait()

    async def _checkpoint(self, moment: Checkpoint) -> None:
        if moment.session_id == self._session.id:
            await self.flush(durable=moment.durable)
