"""Keeps session logs in PostgreSQL, for sessions that several machines must reach.

Owns connections, claims and the place each log has reached. The tables belong to `postgres_schema`; what
their rows mean, to `scan`, which reads a log's rows as it reads a file's lines.

1. A claim is two things. An advisory lock on a connection of its own tells who is alive: it ends with the
   process that holds it. The `claim` column tells who may write: each claim leaves a new token there.
2. Every write is one statement that moves `next_seq` only where token and place are still ours. Whoever
   lost the lock without noticing writes until somebody else claims the session, and never again.
3. A statement whose answer got lost may have happened or not. Until it is known the log is `unsure`, and
   the next write takes back whatever stands behind the place it begins at.
4. A connection that is found dead is replaced, and the work done once more. So all work may be repeated.
"""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit
from uuid import UUID, uuid4

import anyio
import orjson
from anyio import CancelScope, move_on_after, to_thread

from agent_loop.errors import ConfigError, StoreError, in_words
from agent_loop.events.facts import LoggedFact, LogRow, SessionTitle, TurnStart, UserMessage, facts_in
from agent_loop.events.facts_json import row_to_json
from agent_loop.messages import text_of
from agent_loop.persistence.listing import cursor_of, place_of
from agent_loop.persistence.paths import is_session_id
from agent_loop.persistence.postgres_schema import migrate
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
from agent_loop.persistence.store import Page, SessionSummary
from agent_loop.session.header import SessionHeader, header_from_json, header_to_json
from agent_loop.session.titles import title_from

try:
    import asyncpg
except ModuleNotFoundError as error:
    raise ConfigError(
        "A PostgreSQL store needs asyncpg; install it with: pip install 'acp-agent-server[postgres]'"
    ) from error

T = TypeVar("T")
_Connection = Any  # asyncpg is annotated only halfway
_Pool = Any

CONNECT_TIMEOUT_S: Final = 10.0
COMMAND_TIMEOUT_S: Final = 60.0
CLOSE_GRACE_S: Final = 5.0

_CONNECTIONS: Final = 4
# A machine that vanished with a claim is noticed after about a minute, and the claim is free.
_SERVER_SETTINGS: Final = {
    "application_name": "acp-agent-server",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}

_GONE: Final = (
    asyncpg.PostgresConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.InterfaceError,
    # What asyncpg raises on the first use of a connection that the server ended while it lay idle.
    asyncpg.InternalClientError,
    ConnectionError,
)
_FAILURES: Final = (*_GONE, asyncpg.PostgresError, OSError, TimeoutError)

_NOW_MS: Final = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

_LOCK: Final = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))"
_UNLOCK: Final = "SELECT pg_advisory_unlock(hashtextextended($1, 0))"

# The last line makes a repeated INSERT, whose first answer got lost, find its own row.
_CREATE: Final = f"""
    INSERT INTO sessions (id, header, created_at, updated_at, cwd, parent, claim)
    VALUES ($1, $2, $3, {_NOW_MS}, $4, $5, $6)
    ON CONFLICT (id) DO UPDATE SET id = excluded.id WHERE sessions.claim = excluded.claim
    RETURNING true
"""

_CLAIM: Final = "UPDATE sessions SET claim = $2 WHERE id = $1 RETURNING header::text"

_ROWS: Final = "SELECT row FROM facts WHERE session_id = $1 ORDER BY seq"

# set_config stands where it is sure to run, inside the statement's own transaction: no round trip more.
_WRITE: Final = f"""
    WITH fence AS (
        UPDATE sessions SET
            next_seq = $4,
            updated_at = CASE WHEN $4 > $3 THEN {_NOW_MS} ELSE updated_at END,
            has_turn = has_turn OR $6,
            title = coalesce($7, title),
            first_words = CASE WHEN first_words = '' THEN $8 ELSE first_words END
        WHERE id = $1 AND claim = $2 AND next_seq = $3
        RETURNING set_config(
            'synchronous_commit',
            CASE WHEN $5 THEN coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on')
                ELSE 'off' END,
            true
        )
    ), added AS (
        INSERT INTO facts (session_id, seq, n, row)
        SELECT $1, new.* FROM fence, unnest($9::bigint[], $10::integer[], $11::text[]) AS new
    )
    SELECT count(*) FROM fence
"""

_CUT: Final = """
    WITH fence AS (
        UPDATE sessions SET next_seq = $3 WHERE id = $1 AND claim = $2 RETURNING id
    )
    DELETE FROM facts USING fence WHERE session_id = fence.id AND seq >= $3
"""


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
    lease: _Connection | None
    next_seq: int = 0
    unsure: bool = False
    lost: bool = False
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class PostgresStore:
    """A `Store` in the database at `url`; nothing is connected before the first use."""

    def __init__(self, url: str) -> None:
        """Take an address such as `postgresql://user:password@host:5432/database`.

        Raises:
            ValueError: It is none; the message does not repeat it, for the sake of the password.
        """
        self._url = url
        self._place, self._secret = _place_and_secret(url)
        self._logs: dict[str, _Log] = {}
        self._pool: _Pool | None = None
        self._connecting = anyio.Lock()
        self._leased: _Connection | None = None
        self._leasing = anyio.Lock()
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
                    async with self._connection() as connection:
                        values = (header.created_at, header.cwd, header.parent, token)
                        if not await connection.fetchval(_CREATE, header.id, row, *values):
                            raise taken(header.id)
                except BaseException:
                    if known is None:
                        await self._unlock(header.id, lease)
                    raise
                self._logs[header.id] = _Log(header.id, token, lease)

        await self._do(f"create session {header.id}", work)

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

        await self._do(f"write session {session_id}", work)

    async def load(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        """Claim a session and give all of it that is whole; see `Store.load`."""
        require_id(session_id)
        return await self._do(f"read session {session_id}", lambda: self._load(session_id))

    async def peek(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        """What is whole of a session, claimed by whom it may be; see `Store.peek`."""
        require_id(session_id)

        async def work() -> tuple[SessionHeader, list[LogRow]]:
            async with self._connection() as connection:
                header = await connection.fetchval(
                    "SELECT header::text FROM sessions WHERE id = $1", session_id
                )
                if header is None:
                    raise unknown(session_id)
                return await _read(connection, session_id, header)

        return await self._do(f"read session {session_id}", work)

    async def repair(self, session_id: str, closers: Sequence[LoggedFact]) -> None:
        """Cut a torn tail and close what it left open; see `Store.repair`."""
        log, batch = self._claimed(session_id), tuple(closers)

        async def work() -> None:
            async with log.lock:
                first_seq = log.next_seq
                next_seq = checked_places(session_id, batch, first_seq, first_seq)
                async with self._connection() as connection:
                    stored = await connection.fetchval(
                        "SELECT next_seq FROM sessions WHERE id = $1", session_id
                    )
                if batch or stored != first_seq:
                    log.unsure = True
                    await self._write(log, batch, next_seq, True)

        await self._do(f"repair session {session_id}", work)

    async def release(self, session_id: str) -> None:
        """Give up the claim; see `Store.release`. A lost connection has given it up already."""
        log = self._logs.pop(session_id, None)
        if log is not None:
            with CancelScope(shield=True):
                async with log.lock:
                    await self._unlock(session_id, log.lease)

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> Page:
        """Stored sessions with at least one turn, newest first; see `Store.list_sessions`."""
        after = None if cursor is None else place_of(cursor)
        if after is not None and not (is_session_id(after[1]) and 0 <= after[0] < 2**63):
            raise ValueError("not a cursor of this list")
        return await self._do("list the sessions", lambda: self._list(cwd, after, limit))

    async def delete(self, session_id: str) -> bool:
        """Forget a session; see `Store.delete`."""
        if not is_session_id(session_id):
            return False
        return await self._do(f"delete session {session_id}", lambda: self._delete(session_id))

    async def aclose(self) -> None:
        """Give up every claim and every connection."""
        self._logs.clear()
        pool, self._pool = self._pool, None
        lease, self._leased = self._leased, None
        with CancelScope(shield=True):
            if lease is not None:
                # Closing says goodbye without waiting for the server, whose locks may live a moment longer.
                with move_on_after(CLOSE_GRACE_S):
                    await _quietly(lease.execute("SELECT pg_advisory_unlock_all()"))
                    await _quietly(lease.close(timeout=CLOSE_GRACE_S))
                lease.terminate()
            if pool is not None:
                with move_on_after(CLOSE_GRACE_S):
                    await _quietly(pool.close())
                pool.terminate()

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
                    async with self._connection() as connection:
                        header = await connection.fetchval(_CLAIM, session_id, log.token)
                        if header is None:
                            raise unknown(session_id)
                        seen, rows = await _read(connection, session_id, header)
                except BaseException:
                    if known is None:
                        await self._unlock(session_id, lease)
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
            *_listed(rows),
            [row.seq for row in rows],
            [facts_in(row) for row in rows],
            lines,
        )
        unsure, log.unsure = log.unsure, True
        async with self._connection() as connection:
            if unsure:
                async with connection.transaction():
                    await connection.execute(_CUT, log.id, log.token, log.next_seq)
                    written = await connection.fetchval(_WRITE, *values)
            else:
                written = await connection.fetchval(_WRITE, *values)
        log.unsure = False
        if not written:
            await self._explain(log)
        log.next_seq = next_seq

    async def _explain(self, log: _Log) -> None:
        """Raises what keeps a log from being written."""
        async with self._connection() as connection:
            claim = await connection.fetchval("SELECT claim FROM sessions WHERE id = $1", log.id)
        if claim is None:
            raise StoreError("io", f"Session {log.id} is gone from {self._place}.")
        if claim != log.token:
            log.lost = True
            await self._unlock(log.id, log.lease)
            log.lease = None
            raise locked(log.id)
        raise StoreError("io", f"The log of session {log.id} does not end where it was left.")

    async def _list(self, cwd: str | None, after: tuple[int, str] | None, limit: int) -> Page:
        asked: list[Any] = [limit + 1]
        wanted = ["has_turn"]
        async with self._connection() as connection:
            if cwd is not None:
                known = await connection.fetch(
                    "SELECT DISTINCT cwd FROM sessions WHERE has_turn AND cwd IS NOT NULL"
                )
                asked.append(await to_thread.run_sync(_same_place, [it["cwd"] for it in known], cwd))
                wanted.append(f"cwd = ANY(${len(asked)}::text[])")
            if after is not None:
                asked += after
                wanted.append(f"(updated_at, id) < (${len(asked) - 1}, ${len(asked)})")
            found = await connection.fetch(
                "SELECT id, header::text, coalesce(title, first_words) AS title, updated_at FROM sessions"
                f" WHERE {' AND '.join(wanted)} ORDER BY updated_at DESC, id DESC LIMIT $1",
                *asked,
            )

        shown = found[:limit]
        sessions = tuple(filter(None, map(_summary, shown)))
        if len(found) == len(shown):
            return Page(sessions, None)
        return Page(sessions, cursor_of(shown[-1]["updated_at"], shown[-1]["id"]))

    async def _delete(self, session_id: str) -> bool:
        async with self._claiming:
            known = self._logs.get(session_id)
            async with self._connection() as connection:
                if not await connection.fetchval("SELECT true FROM sessions WHERE id = $1", session_id):
                    return False
                lease = await self._lock(session_id, known)
                try:
                    await connection.execute("DELETE FROM sessions WHERE id = $1", session_id)
                finally:
                    if known is None:
                        await self._unlock(session_id, lease)
            if known is not None:
                await self.release(session_id)
            return True

    async def _lock(
        self, session_id: str, known: _Log | None, or_else: Callable[[str], Exception] = locked
    ) -> _Connection:
        """The connection that holds the session's lock from now on, taken once however often asked for."""
        async with self._leasing:
            lease = await self._lease()
            if known is not None and known.lease is lease:
                return lease
            if not await lease.fetchval(_LOCK, session_id):
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

    async def _unlock(self, session_id: str, lease: _Connection | None) -> None:
        """Give the lock back, if need be by giving up the connection; other logs then take theirs anew."""
        if lease is None or lease.is_closed():
            return
        async with self._leasing:
            try:
                await lease.fetchval(_UNLOCK, session_id, timeout=CLOSE_GRACE_S)
            except _FAILURES:
                lease.terminate()

    async def _lease(self) -> _Connection:
        """The connection that holds this store's locks; called while `_leasing` is held."""
        if self._leased is None or self._leased.is_closed():
            self._leased = await self._connect(self._url)
        return self._leased

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[_Connection]:
        """A connection for one piece of work, to tables that are up to date."""
        async with self._connecting:
            if self._pool is None:
                pool = asyncpg.create_pool(
                    self._url, min_size=0, max_size=_CONNECTIONS, connect=self._connect, reset=_as_it_is
                )
                try:
                    await pool
                    async with pool.acquire() as connection:
                        await migrate(connection)
                except BaseException:
                    pool.terminate()
                    raise
                self._pool = pool
            pool = self._pool
        async with pool.acquire(timeout=CONNECT_TIMEOUT_S) as connection:
            yield connection

    async def _connect(self, url: str, **more: Any) -> _Connection:
        try:
            return await asyncpg.connect(
                url,
                timeout=CONNECT_TIMEOUT_S,
                command_timeout=COMMAND_TIMEOUT_S,
                server_settings=_SERVER_SETTINGS,
                **more,
            )
        except ValueError as error:
            # How asyncpg refuses an address; some of its words repeat parts of it.
            raise StoreError("io", f"Could not read the address of {self._place}.") from error

    async def _do(self, doing: str, work: Callable[[], Awaitable[T]]) -> T:
        """Work is short and must not be left half done: a cancel waits for it."""
        with CancelScope(shield=True):
            try:
                try:
                    result = await work()
                except _GONE:
                    await self._drop_dead()
                    result = await work()
            except _FAILURES as error:
                raise StoreError(
                    "io", f"Could not {doing} in {self._place}: {self._words(error)}."
                ) from error
        return result

    async def _drop_dead(self) -> None:
        """Of many connections one was found dead; the others may be, and not know it yet."""
        if self._pool is not None:
            await self._pool.expire_connections()
        async with self._leasing:
            if self._leased is not None:
                try:
                    await self._leased.fetchval("SELECT 1", timeout=CLOSE_GRACE_S)
                except _FAILURES:
                    self._leased.terminate()

    def _words(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            return "it did not answer in time"
        words = in_words(error).splitlines()[0].rstrip(".")
        return words.replace(self._secret, "***") if self._secret else words


async def _read(connection: _Connection, session_id: str, header: str) -> tuple[SessionHeader, list[LogRow]]:
    rows = [it["row"] for it in await connection.fetch(_ROWS, session_id)]
    seen, found, _ = read_log("\n".join([header, *rows, ""]).encode(), session_id)
    return seen, found


def _listed(rows: Sequence[LogRow]) -> tuple[bool, str | None, str]:
    """What the list shows because of these rows: a turn, a title, the first words."""
    names = [row.title for row in rows if isinstance(row, SessionTitle)]
    prompts = (title_from(text_of(row.content)) for row in rows if isinstance(row, UserMessage))
    return (
        any(isinstance(row, TurnStart) for row in rows),
        _text(names[-1]) if names else None,
        _text(next(filter(None, prompts), "")),
    )


def _text(words: str) -> str:
    """PostgreSQL's text has no NUL."""
    return words.replace("\0", "")


def _summary(found: Any) -> SessionSummary | None:
    """None for a header that another version wrote."""
    try:
        header = header_from_json(orjson.loads(found["header"]))
    except ValueError:
        return None
    return SessionSummary(header, found["title"], found["updated_at"])


def _same_place(known: list[str], cwd: str) -> list[str]:
    """Those spellings that lead to `cwd` on this machine."""
    real = os.path.realpath(cwd)
    return [it for it in known if os.path.realpath(it) == real]


async def _quietly(work: Awaitable[object]) -> None:
    with suppress(*_FAILURES):
        await work


async def _as_it_is(_: object) -> None:
    """No work here changes its connection, so none is reset: that would be a round trip each."""


def _place_and_secret(url: str) -> tuple[str, str]:
    """The database as a person may read it, and the password nobody may."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"postgresql", "postgres"}:
        raise ValueError("not the address of a PostgreSQL database: postgresql://user@host/database is one")
    login, _, host = parts.netloc.rpartition("@")
    name = unquote(parts.path.removeprefix("/")) or "by default"
    return f"the database {name} on {unquote(host) or 'this machine'}", unquote(login.partition(":")[2])
