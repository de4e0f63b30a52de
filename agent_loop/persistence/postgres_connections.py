"""The connections of a PostgreSQL store: made at need, replaced when dead, and closed within a time.

Owns the pool that work is done over, the one lease connection that holds locks, and the words for what
fails, in which no password stands. Which locks are taken, and what is written, belongs to `postgres`.
Keeps rule 4 of `postgres`, and its part of rule 1: a lock that cannot be given back goes with its connection.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import anyio
from anyio import CancelScope, move_on_after

from agent_loop.errors import ConfigError, StoreError, in_words
from agent_loop.persistence import postgres_sql as sql
from agent_loop.persistence.postgres_schema import migrate

try:
    import asyncpg
except ModuleNotFoundError as error:
    raise ConfigError(
        "A PostgreSQL store needs asyncpg; install it with: pip install 'acp-agent-server[postgres]'"
    ) from error

T = TypeVar("T")
Connection = Any  # asyncpg is annotated only halfway
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


class Connections:
    """What leads to the database at `url`; nothing is connected before the first use.

    Attributes:
        place: The database as a person may read it.
    """

    def __init__(self, url: str) -> None:
        """Raises ConfigError for what is no address of a PostgreSQL database, without repeating it."""
        self.place, self._secret = _place_and_secret(url)
        self._url = url
        self._pool: _Pool | None = None
        self._connecting = anyio.Lock()
        self._leased: Connection | None = None
        self._leasing = anyio.Lock()

    async def do(self, doing: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do a piece of work, and once more if a connection was found dead.

        Work is short and must not be left half done: a cancel waits for it.

        Raises:
            StoreError: `io`, the database failed; the words are "Could not", `doing`, where and why.
        """
        with CancelScope(shield=True):
            try:
                try:
                    result = await work()
                except _GONE:
                    await self._drop_dead()
                    result = await work()
            except _FAILURES as error:
                raise StoreError("io", f"Could not {doing} in {self.place}: {self._words(error)}.") from error
        return result

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
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

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[Connection]:
        """The connection that holds this store's locks, to one user at a time; a new one if it is dead."""
        async with self._leasing:
            if self._leased is None or self._leased.is_closed():
                self._leased = await self._connect(self._url)
            yield self._leased

    async def unlock(self, session_id: str, lease: Connection | None) -> None:
        """Give a lock back, if need be by giving up the connection; other logs then take theirs anew."""
        if lease is not None and not lease.is_closed():
            async with self._leasing:
                await _say_or_end(lease, sql.UNLOCK, session_id)

    async def aclose(self) -> None:
        """End every connection, and every lock with it."""
        pool, self._pool = self._pool, None
        lease, self._leased = self._leased, None
        with CancelScope(shield=True):
            if lease is not None:
                # Closing says goodbye without waiting for the server, whose locks may live a moment longer.
                with move_on_after(CLOSE_GRACE_S):
                    await _quietly(lease.execute(sql.UNLOCK_ALL))
                    await _quietly(lease.close(timeout=CLOSE_GRACE_S))
                lease.terminate()
            if pool is not None:
                with move_on_after(CLOSE_GRACE_S):
                    await _quietly(pool.close())
                pool.terminate()

    async def _connect(self, url: str, **more: Any) -> Connection:
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
            raise StoreError("io", f"Could not read the address of {self.place}.") from error

    async def _drop_dead(self) -> None:
        """Of many connections one was found dead; the others may be, and not know it yet."""
        if self._pool is not None:
            await self._pool.expire_connections()
        async with self._leasing:
            if self._leased is not None:
                await _say_or_end(self._leased, "SELECT 1")

    def _words(self, error: BaseException) -> str:
        if isinstance(error, TimeoutError):
            return "it did not answer in time"
        words = in_words(error).splitlines()[0].rstrip(".")
        return words.replace(self._secret, "***") if self._secret else words


async def _say_or_end(lease: Connection, statement: str, *values: Any) -> None:
    try:
        await lease.fetchval(statement, *values, timeout=CLOSE_GRACE_S)
    except _FAILURES:
        lease.terminate()


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
        raise ConfigError(
            "store.url is not the address of a PostgreSQL database: postgresql://user@host/database is one."
        )
    login, _, host = parts.netloc.rpartition("@")
    name = unquote(parts.path.removeprefix("/")) or "by default"
    return f"the database {name} on {unquote(host) or 'this machine'}", unquote(login.partition(":")[2])
