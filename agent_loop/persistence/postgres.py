"""Keeps session logs in PostgreSQL, for sessions that several machines must reach.

Owns claims and the place each log has reached. Connections belong to `postgres_connections`, statements to
`postgres_sql`, tables to `postgres_schema`, the list to `postgres_listing`; what a log's rows mean, to
`scan`, which reads them as it reads a file's lines. Rules 1 and 3 are kept here, rule 2 in `postgres_sql`,
rule 4 in `postgres_connections`.

1. A claim is two things. An advisory lock on a connection of its own tells who is alive: it ends with the
   process that holds it. The `claim` column tells who may write: each claim leaves a new token there.
2. Every write is one statement that moves `next_seq` only where token and place are still ours. Whoever
   lost the lock without noticing writes until somebody else claims the session, and never again.
3. A statement whose answer got lost may have happened or not. Until it is known the log is `unsure`, and
   the next write takes back whatever stands behind the place it begins at.
4. A connection that is found dead is replaced, and the work done once more. So all work may be repeated.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import anyio
from anyio import CancelScope, to_thread

from agent_loop.errors import StoreError
from agent_loop.events.facts import LoggedFact, LogRow, facts_in
from agent_loop.events.facts_json import row_to_json
from agent_loop.persistence import postgres_sql as sql
from agent_loop.persistence.listing import place_of
from agent_loop.persistence.paths import is_session_id
from agent_loop.persistence.postgres_connections import Connection, Connections
from agent_loop.persistence.postgres_listing import listed, read_page
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
from agent_loop.persistence.scan import read_log
from agent_loop.persistence.store import Page
from agent_loop.session.header import SessionHeader, header_to_json


@dataclass(slots=True)
class _Log:
    """A log this store has claimed, and where its next fact goes.

    Attributes:
        lease: The connection that holds the lock; None while nothing does.
        unsure: More may be stored than `next_seq` says; see rule 3.
        lost: Somebody else claimed the session since.
    """

    id: str
    token: UUID
    lease: Connection | None
    next_seq: int = 0
    unsure: bool = False
    lost: bool = False
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class PostgresStore:
    """A `Store` in the database at `url`; nothing is connected before the first use."""

    def __init__(self, url: str) -> None:
        """Take an address such as `postgresql://user:password@host:5432/database`.

        Raises:
            ConfigError: It is none; the message does not repeat it, for the sake of the password.
        """
        self._connections = Connections(url)
        self._logs: dict[str, _Log] = {}
        self._claiming = anyio.Lock()

    async def create(self, header: SessionHeader, check: Callable[[], object] | None = None) -> None:
        """Make the session known; see `Store.create`.

        Raises:
            ValueError: The id is none, or the header is nothing PostgreSQL can keep.
        """
        require_new_id(header.id)
        row = line(header_to_json(header), "the header").decode()
        if "\0" in f"{header.cwd}{header.parent}":
            raise ValueError("the header cannot be stored: it holds a NUL")
        if check is not None:
            with CancelScope(shield=True):
                await to_thread.run_sync(check)
        token = uuid4()

        async def work() -> None:
            async with self._claiming:
                known = self._logs.get(header.id)
                lease = await self._lock(header.id, known, or_else=taken)
                try:
                    async with self._connections.connection() as connection:
                        values = (header.created_at, header.cwd, header.parent, token)
                        if not await connection.fetchval(sql.CREATE, header.id, row, *values):
                            raise taken(header.id)
                except BaseException:
                    if known is None:
                        await self._connections.unlock(header.id, lease)
                    raise
                self._logs[header.id] = _Log(header.id, token, lease)

        await self._connections.do(f"create session {header.id}", work)

    async def append(self, session_id: str, rows: Sequence[LogRow], *, first_seq: int, durable: bool) -> None:
        """Write rows behind what is stored; see `Store.append`. Without any, `durable` syncs earlier ones.

        Raises:
            ValueError: Wrong `first_seq`, a gap, or a fact that JSON cannot carry.
        """
        log, batch = self._claimed(session_id), tuple(rows)

        async def work() -> None:
            async with log.lock:
                next_seq = checked_places(session_id, batch, first_seq, log.next_seq)
                await self._write(log, batch, next_seq, durable)

        await self._connections.do(f"write session {session_id}", work)

    async def load(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        """Claim a session and give all of it that is whole; see `Store.load`."""
        require_id(session_id)
        return await self._connections.do(f"read session {session_id}", lambda: self._load(session_id))

    async def peek(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        """What is whole of a session, claimed by whom it may be; see `Store.peek`."""
        require_id(session_id)

        async def work() -> tuple[SessionHeader, list[LogRow]]:
            async with self._connections.connection() as connection:
                header = await connection.fetchval(sql.HEADER, session_id)
                if header is None:
                    raise unknown(session_id)
                return await _read(connection, session_id, header)

        return await self._connections.do(f"read session {session_id}", work)

    async def repair(self, session_id: str, closers: Sequence[LoggedFact]) -> None:
        """Cut a torn tail and close what it left open; see `Store.repair`."""
        log, batch = self._claimed(session_id), tuple(closers)

        async def work() -> None:
            async with log.lock:
                first_seq = log.next_seq
                next_seq = checked_places(session_id, batch, first_seq, first_seq)
                async with self._connections.connection() as connection:
                    stored = await connection.fetchval(sql.NEXT_SEQ, session_id)
                if batch or stored != first_seq:
                    log.unsure = True
                    await self._write(log, batch, next_seq, True)

        await self._connections.do(f"repair session {session_id}", work)

    async def release(self, session_id: str) -> None:
        """Give up the claim; see `Store.release`. A lost connection has given it up already."""
        log = self._logs.pop(session_id, None)
        if log is not None:
            with CancelScope(shield=True):
                async with log.lock:
                    await self._connections.unlock(session_id, log.lease)

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> Page:
        """Stored sessions with at least one turn, newest first; see `Store.list_sessions`."""
        after = None if cursor is None else place_of(cursor)
        if after is not None and not (is_session_id(after[1]) and 0 <= after[0] < 2**63):
            raise ValueError("not a cursor of this list")

        async def work() -> Page:
            async with self._connections.connection() as connection:
                return await read_page(connection, cwd, after, limit)

        return await self._connections.do("list the sessions", work)

    async def delete(self, session_id: str) -> bool:
        """Forget a session; see `Store.delete`."""
        if not is_session_id(session_id):
            return False
        return await self._connections.do(f"delete session {session_id}", lambda: self._delete(session_id))

    async def aclose(self) -> None:
        """Give up every claim and every connection."""
        self._logs.clear()
        await self._connections.aclose()

    def _claimed(self, session_id: str) -> _Log:
        log = self._logs.get(session_id)
        if log is None:
            raise not_open(session_id)
        return log

    async def _load(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        async with self._claiming:
            known = self._logs.get(session_id)
            lease = await self._lock(session_id, known)
            log = known or _Log(session_id, uuid4(), lease)
            if log.lost:
                log.lost, log.token = False, uuid4()

            async with log.lock:
                try:
                    async with self._connections.connection() as connection:
                        header = await connection.fetchval(sql.CLAIM, session_id, log.token)
                        if header is None:
                            raise unknown(session_id)
                        seen, rows = await _read(connection, session_id, header)
                except BaseException:
                    if known is None:
                        await self._connections.unlock(session_id, lease)
                    raise
                log.lease, log.unsure = lease, False
                log.next_seq = sum(map(facts_in, rows))
            self._logs[session_id] = log
        return seen, rows

    async def _write(self, log: _Log, rows: tuple[LogRow, ...], next_seq: int, durable: bool) -> None:
        """One statement that adds rows at the log's next place, or says why not; the log's lock is held."""
        lines = [line(row_to_json(row), f"fact {row.seq}, {row.TYPE},")[:-1].decode() for row in rows]
        if log.lost:
            raise locked(log.id)
        await self._hold_again(log)

        values = (
            *(log.id, log.token, log.next_seq, next_seq, durable),
            *listed(rows),
            [row.seq for row in rows],
            [facts_in(row) for row in rows],
            lines,
        )
        unsure, log.unsure = log.unsure, True
        async with self._connections.connection() as connection:
            if unsure:
                async with connection.transaction():
                    await connection.execute(sql.CUT, log.id, log.token, log.next_seq)
                    written = await connection.fetchval(sql.WRITE, *values)
            else:
                written = await connection.fetchval(sql.WRITE, *values)
        log.unsure = False
        if not written:
            await self._explain(log)
        log.next_seq = next_seq

    async def _explain(self, log: _Log) -> None:
        """Raises what keeps a log from being written."""
        async with self._connections.connection() as connection:
            claim = await connection.fetchval(sql.CLAIM_OF, log.id)
        if claim is None:
            raise StoreError("io", f"Session {log.id} is gone from {self._connections.place}.")
        if claim != log.token:
            log.lost = True
            await self._connections.unlock(log.id, log.lease)
            log.lease = None
            raise locked(log.id)
        raise StoreError("io", f"The log of session {log.id} does not end where it was left.")

    async def _delete(self, session_id: str) -> bool:
        async with self._claiming:
            known = self._logs.get(session_id)
            async with self._connections.connection() as connection:
                if not await connection.fetchval(sql.IS_KNOWN, session_id):
                    return False
                lease = await self._lock(session_id, known)
                try:
                    await connection.execute(sql.DELETE, session_id)
                finally:
                    if known is None:
                        await self._connections.unlock(session_id, lease)
            if known is not None:
                await self.release(session_id)
            return True

    async def _lock(
        self, session_id: str, known: _Log | None, or_else: Callable[[str], Exception] = locked
    ) -> Connection:
        """The connection that holds the session's lock from now on, taken once however often asked for."""
        async with self._connections.lease() as lease:
            if known is not None and known.lease is lease:
                return lease
            if not await lease.fetchval(sql.LOCK, session_id):
                raise or_else(session_id)
            if known is not None:
                known.lease = lease
            return lease

    async def _hold_again(self, log: _Log) -> None:
        """Take the lock anew when its connection died. Without it the token still tells who may write."""
        if log.lease is not None and not log.lease.is_closed():
            return
        try:
            await self._lock(log.id, log)
        except StoreError:
            log.lease = None


async def _read(connection: Connection, session_id: str, header: str) -> tuple[SessionHeader, list[LogRow]]:
    rows = [it["row"] for it in await connection.fetch(sql.ROWS, session_id)]
    seen, found, _ = read_log("\n".join([header, *rows, ""]).encode(), session_id)
    return seen, found
