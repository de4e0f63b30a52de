"""Holds the PostgreSQL store to the store contract, and to its own promises about claims and connections."""

import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import pytest
from anyio import Event, create_task_group, sleep, to_thread, wait_all_tasks_blocked

from agent_loop.chunks import TextDelta
from agent_loop.errors import ConfigError, StoreError
from agent_loop.events.facts import AssistantChunk, SessionTitle
from agent_loop.persistence import postgres_schema
from agent_loop.persistence.listing import cursor_of
from agent_loop.persistence.postgres_schema import MIGRATIONS
from agent_loop.session.header import SessionHeader
from tests.agent_loop.persistence.store_contract import (
    REPOSITORY,
    FailingWrites,
    OpenStore,
    StoreContract,
    all_pages,
    bytes_of,
    listed,
    locked_out,
    new_header,
    opened,
    titles,
    write,
)
from tests.doubles.facts import TIME_MS, one_turn, placed_facts
from tests.doubles.postgres_server import PASSWORD, PostgresServer, running_server, why_not

pytest.importorskip("asyncpg", reason="asyncpg is not installed: pip install 'acp-agent-server[postgres]'")

from agent_loop.persistence import postgres_connections
from agent_loop.persistence.postgres import PostgresStore
from agent_loop.persistence.postgres_connections import Connections

_SESSIONS = (
    "SELECT id, header, created_at, updated_at, cwd, parent, title, first_words, has_turn, next_seq"
    " FROM sessions ORDER BY id"
)
_FACTS = "SELECT session_id, seq, n, row FROM facts ORDER BY session_id, seq"


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    """One server for all tests of a process; starting one takes seconds."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with TemporaryDirectory(prefix="acp-postgres-") as folder:
        os.chmod(folder, stat.S_IRWXU)
        with running_server(Path(folder)) as server:
            yield server


@pytest.fixture
def database(server: PostgresServer) -> str:
    return server.new_database()


def everything_in(server: PostgresServer, database: str) -> str:
    """Whatever a database holds, but for the claims; nothing before the tables are there."""
    if not server.sql(database, "SELECT to_regclass('schema_version')").strip():
        return ""
    return server.sql(database, _SESSIONS) + server.sql(database, _FACTS)


@contextmanager
def read_only(server: PostgresServer, database: str) -> Iterator[None]:
    """The database takes no writes, as after a switch to a standby; nobody keeps an older connection."""
    server.sql("postgres", f"ALTER DATABASE {database} SET default_transaction_read_only = on")
    server.disconnect_all(database)
    try:
        yield
    finally:
        server.sql("postgres", f"ALTER DATABASE {database} RESET default_transaction_read_only")
        server.disconnect_all(database)


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def open_store(self, server: PostgresServer, database: str) -> OpenStore:
        return lambda: PostgresStore(server.url(database))

    @pytest.fixture
    def recipe(self, server: PostgresServer, database: str) -> str:
        return (
            "from agent_loop.persistence.postgres import PostgresStore\n"
            f"store = PostgresStore({server.url(database)!r})"
        )

    @pytest.fixture
    def failing_writes(self, server: PostgresServer, database: str) -> FailingWrites:
        return lambda _: read_only(server, database)

    @pytest.fixture
    def everything_stored(self, server: PostgresServer, database: str) -> Callable[[], str]:
        return lambda: everything_in(server, database)


@pytest.fixture
async def store(server: PostgresServer, database: str) -> AsyncIterator[PostgresStore]:
    async with opened(made := PostgresStore(server.url(database))):
        yield made


@pytest.fixture
async def other(server: PostgresServer, database: str) -> AsyncIterator[PostgresStore]:
    """A second store on the same place, as another machine would have."""
    async with opened(made := PostgresStore(server.url(database))):
        yield made


def drop_lease(server: PostgresServer, database: str) -> None:
    """End the connections that hold locks, and only those; their owners are not asked."""
    server.disconnect_all(database, "pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')")


async def log_of(store: PostgresStore, session_id: str) -> list[bytes]:
    return bytes_of((await store.peek(session_id))[1])


async def test_a_lost_connection_is_replaced_and_the_claim_goes_on(
    server: PostgresServer, database: str, store: PostgresStore, other: PostgresStore
) -> None:
    """Our promise: a network that hiccups costs nobody a session."""
    header = new_header()
    await store.create(header)

    for turn in range(3):
        server.disconnect_all(database)
        await store.append(header.id, one_turn(turn + 1, turn * 7), first_seq=turn * 7, durable=True)

    await locked_out(other, header.id)
    server.disconnect_all(database)
    assert await log_of(other, header.id) == bytes_of([*one_turn(1), *one_turn(2, 7), *one_turn(3, 14)])


async def test_whoever_lost_its_lock_writes_only_until_somebody_else_claims(
    server: PostgresServer, database: str, store: PostgresStore, other: PostgresStore
) -> None:
    """Issue, single writer: the token is compared in the statement that writes."""
    header = new_header()
    await store.create(header)
    await store.append(header.id, one_turn(), first_seq=0, durable=False)
    drop_lease(server, database)
    await other.load(header.id)

    for _ in range(2):
        with pytest.raises(StoreError, match="open in another process") as raised:
            await store.append(header.id, one_turn(2, 7), first_seq=7, durable=False)
        assert raised.value.kind == "locked"

    await other.append(header.id, one_turn(2, 7), first_seq=7, durable=False)
    await locked_out(store, header.id)
    await other.release(header.id)
    _, rows = await store.load(header.id)
    await store.append(header.id, one_turn(3, 14), first_seq=14, durable=False)
    assert bytes_of(rows) == bytes_of([*one_turn(), *one_turn(2, 7)])
    await locked_out(other, header.id)


async def test_a_session_somebody_claimed_and_gave_back_meanwhile_is_lost_all_the_same(
    server: PostgresServer, database: str, store: PostgresStore, other: PostgresStore
) -> None:
    """Our promise: what others wrote is read first; and no lock is kept for nothing."""
    header = new_header()
    await store.create(header)
    drop_lease(server, database)
    await other.load(header.id)
    await other.release(header.id)

    with pytest.raises(StoreError) as raised:
        await store.append(header.id, one_turn(), first_seq=0, durable=False)

    assert raised.value.kind == "locked"
    await other.load(header.id)
    await store.release(header.id)
    await locked_out(store, header.id)


async def test_a_lock_held_by_one_who_never_claimed_stops_no_writer(
    server: PostgresServer, database: str, store: PostgresStore, other: PostgresStore
) -> None:
    """Rule 1: the lock tells who lives, the token who writes; a claimant stuck in between stops nobody."""
    header = new_header()
    await store.create(header)
    drop_lease(server, database)
    await other._lock(header.id, None)

    await store.append(header.id, one_turn(), first_seq=0, durable=False)

    assert await log_of(other, header.id) == bytes_of(one_turn())


async def test_a_server_that_is_down_is_an_io_error_in_words_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    """Store seam: `io`; the words name host and database, never the password."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    header = new_header()
    with TemporaryDirectory(prefix="acp-postgres-") as folder, running_server(Path(folder)) as server:
        database = server.new_database()
        async with opened(store := PostgresStore(server.url(database))):
            await store.create(header)
            await store.append(header.id, one_turn(), first_seq=0, durable=True)
            server.stop()

            with pytest.raises(StoreError):
                await store.load(header.id)
            with pytest.raises(StoreError) as raised:
                await store.append(header.id, one_turn(2, 7), first_seq=7, durable=False)
            server.start()

            await store.append(header.id, one_turn(2, 7), first_seq=7, durable=True)
            assert await log_of(store, header.id) == bytes_of([*one_turn(), *one_turn(2, 7)])
            server.stop()

    assert raised.value.kind == "io"
    assert f"write session {header.id} in the database {database} on 127.0.0.1:" in str(raised.value)
    assert PASSWORD not in str(raised.value)


@pytest.mark.parametrize("kept", [True, False], ids=["it happened", "it did not"])
@pytest.mark.parametrize("more", [0, 7])
async def test_a_write_whose_answer_got_lost_is_made_once(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, kept: bool, more: int
) -> None:
    """Rule 3: whether a lost statement happened or not, the rows stand there once; later ones may join."""
    header = new_header()
    await store.create(header)
    await store.append(header.id, one_turn(), first_seq=0, durable=False)
    rows = [*one_turn(2, 7), *one_turn(3, 14)]
    whole = store._connections.connection
    lost = 0

    @asynccontextmanager
    async def losing() -> AsyncIterator[Any]:
        async with whole() as connection:

            async def fetchval(query: str, *values: Any) -> Any:
                nonlocal lost
                if "WITH fence" not in query:
                    return await connection.fetchval(query, *values)
                lost += 1
                if kept or lost > 1:
                    await connection.fetchval(query, *values)
                raise ConnectionResetError("gone")

            yield SimpleNamespace(
                fetchval=fetchval, execute=connection.execute, transaction=connection.transaction
            )

    with monkeypatch.context() as patch:
        patch.setattr(store._connections, "connection", losing)
        with pytest.raises(StoreError, match="gone"):
            await store.append(header.id, rows[:7], first_seq=7, durable=False)
    await store.append(header.id, rows[: 7 + more], first_seq=7, durable=False)

    assert lost == 2
    assert await log_of(store, header.id) == bytes_of([*one_turn(), *rows[: 7 + more]])


async def test_a_create_whose_answer_got_lost_is_no_duplicate(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 4: work may be repeated; a row with our own token is our own."""
    header = new_header()
    whole = store._connections.connection
    lost: list[int] = []

    @asynccontextmanager
    async def losing() -> AsyncIterator[Any]:
        async with whole() as connection:
            yield connection
        if not lost:
            lost.append(1)
            raise ConnectionResetError("gone")

    monkeypatch.setattr(store._connections, "connection", losing)
    await store.create(header)

    await store.append(header.id, one_turn(), first_seq=0, durable=False)
    await locked_out(other, header.id)
    await store.release(header.id)
    await other.load(header.id)


@pytest.mark.parametrize("at", ["create", "load", "delete"])
async def test_work_that_fails_keeps_no_lock(
    store: PostgresStore, other: PostgresStore, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Our promise: who could not have a session is in nobody's way."""
    header = new_header()
    if at != "create":
        await write(other, header, one_turn())
    whole = store._connections.connection

    @asynccontextmanager
    async def failing() -> AsyncIterator[Any]:
        async with whole():

            async def fail(query: str, *_: Any) -> Any:
                if query.lstrip().startswith("SELECT true"):
                    return True
                raise OSError(5, "Input/output error")

            yield SimpleNamespace(fetchval=fail, execute=fail)

    with monkeypatch.context() as patch:
        patch.setattr(store._connections, "connection", failing)
        with pytest.raises(StoreError, match="Input/output error"):
            await (store.create(header) if at == "create" else getattr(store, at)(header.id))

    if at == "create":
        await other.create(header)
    else:
        await other.load(header.id)


async def test_a_lock_that_cannot_be_given_back_goes_with_its_connection(
    server: PostgresServer, database: str, store: PostgresStore, other: PostgresStore
) -> None:
    """Our promise: release is the end of a claim, whatever becomes of the connection."""
    released, kept = new_header(), new_header()
    await store.create(released)
    await store.create(kept)
    drop_lease(server, database)

    await store.release(released.id)

    await other.load(released.id)
    await store.append(kept.id, one_turn(), first_seq=0, durable=False)
    await locked_out(other, kept.id)


async def test_what_a_crash_or_a_hand_tore_off_the_end_is_left_out_and_cut(
    server: PostgresServer, database: str, store: PostgresStore
) -> None:
    """Contract 1: the same rules as for a file; the server's own writes are whole or not at all."""
    header = new_header()
    await write(store, header, [*one_turn(), *one_turn(2, 7)[:3]])
    server.sql(database, "UPDATE facts SET row = '{broken' WHERE seq = 8")
    before = everything_in(server, database)

    _, rows = await store.load(header.id)
    assert everything_in(server, database) == before
    for _ in range(2):
        with pytest.raises(StoreError, match="does not end where it was left"):
            await store.append(header.id, one_turn(3, 8), first_seq=8, durable=False)
    await store.repair(header.id, [])
    await store.append(header.id, one_turn(3, 8), first_seq=8, durable=False)

    assert bytes_of(rows) == bytes_of([*one_turn(), *one_turn(2, 7)[:1]])
    assert await log_of(store, header.id) == bytes_of([*rows, *one_turn(3, 8)])


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("DELETE FROM facts WHERE seq = 3", "corrupt"),
        ("UPDATE facts SET row = 'x' WHERE seq = 3", "corrupt"),
        ("UPDATE sessions SET header = '{}'", "corrupt"),
        ("UPDATE sessions SET header = jsonb_set(header, '{version}', '2')", "version"),
    ],
)
async def test_a_damaged_session_is_refused_untouched_and_unclaimed(
    server: PostgresServer,
    database: str,
    store: PostgresStore,
    other: PostgresStore,
    statement: str,
    kind: str,
) -> None:
    """Contract 1: damage with a whole turn behind it is corruption, never a torn tail."""
    header = new_header()
    await write(store, header, [*one_turn(), *one_turn(2, 7)])
    server.sql(database, statement)
    before = everything_in(server, database)

    for attempt in (store.load, other.load, store.peek):
        with pytest.raises(StoreError) as raised:
            await attempt(header.id)
        assert raised.value.kind == kind

    assert everything_in(server, database) == before


async def test_a_session_damaged_under_its_writer_stays_its_own(
    server: PostgresServer, database: str, store: PostgresStore, other: PostgresStore
) -> None:
    """Our promise: a load that fails gives up no claim it did not make."""
    header = new_header()
    await store.create(header)
    await store.append(header.id, one_turn(), first_seq=0, durable=False)
    server.sql(database, "UPDATE facts SET row = 'x' WHERE seq = 3")

    with pytest.raises(StoreError) as raised:
        await store.load(header.id)

    assert raised.value.kind == "corrupt"
    await locked_out(other, header.id)


@pytest.mark.parametrize("place", [(2**63, "a"), (-1, "a"), (1, "a\0b"), (1, "")])
async def test_a_cursor_that_points_nowhere_is_refused(store: PostgresStore, place: tuple[int, str]) -> None:
    """ACP, session/list: an invalid cursor is an error of the asker, not of the database."""
    with pytest.raises(ValueError, match="cursor"):
        await store.list_sessions(cwd=None, cursor=cursor_of(*place), limit=10)


async def test_a_session_that_vanished_under_its_writer_is_an_io_error(
    server: PostgresServer, database: str, store: PostgresStore
) -> None:
    """Our promise: an append never makes a log without a header."""
    header = new_header()
    await store.create(header)
    server.sql(database, "DELETE FROM sessions")

    with pytest.raises(StoreError, match="is gone from the database") as raised:
        await store.append(header.id, one_turn(), first_seq=0, durable=False)

    assert raised.value.kind == "io"


async def test_a_header_of_another_version_is_passed_over_in_the_list(
    server: PostgresServer, database: str, store: PostgresStore
) -> None:
    """Our promise: one session nobody here can read hides none of the others, on no page."""
    headers = [new_header() for _ in range(3)]
    for header in headers:
        await write(store, header, one_turn())
    order = await listed(store)
    server.sql(database, f"UPDATE sessions SET header = '{{}}' WHERE id = '{order[1]}'")

    pages = await all_pages(store, 1)

    assert [it.header.id for page in pages for it in page.sessions] == [order[0], order[2]]


async def test_a_list_is_read_from_its_index(server: PostgresServer, database: str) -> None:
    """Issue, PostgreSQL store: listing by index on (updated_at, id)."""
    async with opened(PostgresStore(server.url(database))) as store:
        await write(store, new_header(), one_turn())
    server.sql(
        database,
        "INSERT INTO sessions SELECT gen_random_uuid(), '{}', 1, i, NULL, NULL, NULL, '', true, 7,"
        " gen_random_uuid() FROM generate_series(1, 20000) i; ANALYZE sessions",
    )

    plan = server.sql(
        database,
        "EXPLAIN SELECT id FROM sessions WHERE has_turn AND (updated_at, id) < (9000, 'x')"
        " ORDER BY updated_at DESC, id DESC LIMIT 51",
    )

    assert "sessions_listed" in plan
    assert "Sort" not in plan


async def test_only_durable_writes_wait_for_the_disk(
    server: PostgresServer, database: str, store: PostgresStore
) -> None:
    """Store seam, durable: else surviving this process is enough, and the server answers sooner."""
    header = new_header()
    await store.create(header)
    server.sql(
        database,
        "CREATE TABLE seen (at bigserial, setting text);"
        " CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " INSERT INTO seen (setting) VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;"
        " CREATE CONSTRAINT TRIGGER at_commit AFTER UPDATE ON sessions DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION note()",
    )

    await store.append(header.id, one_turn(1), first_seq=0, durable=False)
    await store.append(header.id, one_turn(2, 7), first_seq=7, durable=True)
    await store.append(header.id, [], first_seq=14, durable=True)
    server.sql("postgres", f"ALTER DATABASE {database} SET synchronous_commit = off")
    server.disconnect_all(database)
    await store.append(header.id, one_turn(3, 14), first_seq=14, durable=True)

    seen = server.sql(database, "SELECT setting FROM seen ORDER BY at").split()
    assert seen[:3] == ["off", "on", "on"]
    assert set(seen[3:]) == {"on"}


async def test_many_first_connections_make_the_tables_once(server: PostgresServer, database: str) -> None:
    """Our promise: a fleet may start all at once."""
    stores = [PostgresStore(server.url(database)) for _ in range(8)]
    headers = [new_header() for _ in stores]

    async with create_task_group() as tasks:
        for store, header in zip(stores, headers, strict=True):
            tasks.start_soon(store.create, header)
    for store in stores:
        await store.aclose()

    assert server.sql(database, "SELECT version FROM schema_version").split() == [str(len(MIGRATIONS))]
    assert server.sql(database, "SELECT count(*) FROM sessions").split() == ["8"]


async def test_tables_of_a_newer_version_are_left_alone(
    server: PostgresServer, database: str, store: PostgresStore, other: PostgresStore
) -> None:
    """Issue, format version: newer refused with a message that says what to do."""
    await write(store, new_header(), one_turn())
    server.sql(database, "UPDATE schema_version SET version = 1000")
    before = everything_in(server, database)

    for _ in range(2):
        with pytest.raises(StoreError, match="Use the version that made them, or a newer one") as raised:
            await other.create(new_header())
        assert raised.value.kind == "version"

    assert everything_in(server, database) == before


async def test_an_older_schema_is_brought_up_to_date(
    server: PostgresServer, database: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: migrations run inside, each once."""
    await write(store, new_header(), one_turn())
    monkeypatch.setattr(
        postgres_schema, "MIGRATIONS", (*MIGRATIONS, "ALTER TABLE sessions ADD COLUMN colour text")
    )

    for _ in range(2):
        async with opened(PostgresStore(server.url(database))) as newer:
            assert len(await listed(newer)) == 1

    assert server.sql(database, "SELECT version FROM schema_version").split() == [str(len(MIGRATIONS) + 1)]


async def test_a_wrong_password_is_an_io_error_that_keeps_it(server: PostgresServer, database: str) -> None:
    """Our promise: no password in words, logs or frames."""
    url = server.url(database).replace(PASSWORD, "wrong%20secret")
    async with opened(PostgresStore(url)) as store:
        with pytest.raises(StoreError, match="password authentication failed") as raised:
            await store.create(new_header())

    assert raised.value.kind == "io"
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "url", ["postgresql://me:hunter2@127.0.0.1:hunter2/db", "postgresql://me:hunter2@127.0.0.1:1/db"]
)
async def test_nobody_there_is_said_without_the_password(url: str) -> None:
    """Our promise: the words name what was asked for."""
    async with opened(PostgresStore(url)) as store:
        with pytest.raises(StoreError, match=r"the database db on 127\.0\.0\.1") as raised:
            await store.peek("some-id")

    assert raised.value.kind == "io"
    assert "me:hunter2" not in str(raised.value)


@pytest.mark.parametrize("url", ["", "mysql://me:hunter2@host/db", "postgresql://me:hunter2@[host/db"])
def test_what_is_no_address_is_refused_without_repeating_it(url: str) -> None:
    """Our promise: a typing error does not print a password."""
    with pytest.raises(ConfigError, match="not the address of a PostgreSQL database") as raised:
        PostgresStore(url)

    assert "hunter2" not in str(raised.value)


async def test_words_that_hold_the_password_hide_it() -> None:
    """Our promise: whatever the library says."""

    async def words(url: str, error: Exception) -> str:
        async def fail() -> None:
            raise error

        with pytest.raises(StoreError) as raised:
            await Connections(url).do("knock", fail)
        return str(raised.value)

    secret, silent = OSError("no hunter2 here."), TimeoutError()
    assert (await words("postgresql://me:hunter2@host/db", secret)) == (
        "Could not knock in the database db on host: no *** here."
    )
    assert (await words("postgresql://host", silent)) == (
        "Could not knock in the database by default on host: it did not answer in time."
    )


def test_a_missing_library_is_named_with_the_way_to_get_it() -> None:
    """Issue: an extra, imported only then."""
    code = "import sys; sys.modules['asyncpg'] = None; import agent_loop.persistence.postgres"

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=30, check=False
    )

    assert "ConfigError: A PostgreSQL store needs asyncpg; install it with:" in done.stderr


async def test_a_header_with_a_nul_is_refused(store: PostgresStore) -> None:
    """Our promise: what cannot be read back is never written."""
    with pytest.raises(ValueError, match="NUL"):
        await store.create(SessionHeader("s", TIME_MS, "/a\0b"))
    with pytest.raises(ValueError, match="the header cannot be written as JSON"):
        await store.create(SessionHeader("s", TIME_MS, parent="\ud800"))


async def test_a_nul_in_a_title_costs_only_itself(store: PostgresStore) -> None:
    """PostgreSQL's text holds no NUL, and JSON's text may; the log keeps it, the list does without."""
    header = new_header()
    named = placed_facts([SessionTitle("a\0b", "user")], 7)

    await write(store, header, [*one_turn(), *named])

    assert await titles(store) == {header.id: "ab"}
    assert await log_of(store, header.id) == bytes_of([*one_turn(), *named])


async def test_twenty_thousand_facts_come_back(store: PostgresStore) -> None:
    """Our promise: thousands of rows are one statement."""
    header = new_header()
    start, *_, end = one_turn()
    facts = placed_facts(
        [start, *(AssistantChunk(1, 1, 1, TextDelta(0, str(at))) for at in range(20_000)), end]
    )

    await write(store, header, facts)

    assert bytes_of((await store.peek(header.id))[1]) == bytes_of(facts)


@pytest.mark.parametrize("at", ["lock", "connections"])
async def test_a_store_that_cannot_say_goodbye_closes_all_the_same(
    server: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Our promise: closing is bounded."""
    monkeypatch.setattr(postgres_connections, "CLOSE_GRACE_S", 0.05)
    store = PostgresStore(server.url(database))
    await store.create(new_header())

    async with create_task_group() as tasks:
        if at == "lock":
            async with store._connections.lease() as lease:
                tasks.start_soon(_asleep, lease)
        else:
            tasks.start_soon(_borrowed, store)
        await wait_all_tasks_blocked()
        await store.aclose()
        tasks.cancel_scope.cancel()


async def _asleep(connection: Any) -> None:
    with suppress(Exception):
        await connection.execute("SELECT pg_sleep(20)")


async def _borrowed(store: PostgresStore) -> None:
    with suppress(Exception):
        async with store._connections.connection() as connection:
            await connection.execute("SELECT pg_sleep(20)")


async def test_writers_that_fight_over_a_session_never_mix(server: PostgresServer, database: str) -> None:
    """Issue, single writer: locks are torn away at random; what was acknowledged is there, once, in order."""
    header = new_header()
    stores = [PostgresStore(server.url(database)) for _ in range(3)]
    acknowledged: list[str] = []
    over = Event()
    await write(stores[0], header, [])

    async def fight(store: PostgresStore, name: str) -> None:
        while not over.is_set():
            try:
                _, rows = await store.load(header.id)
                for at in range(3):
                    title = SessionTitle(f"{name}-{len(rows) + at}", "user")
                    facts = placed_facts([title], len(rows) + at)
                    await store.append(header.id, facts, first_seq=len(rows) + at, durable=False)
                    acknowledged.append(title.title)
                await store.release(header.id)
            except StoreError as error:
                refused.add(error.kind)
                await sleep(0.005)

    refused: set[str] = set()
    async with create_task_group() as tasks:
        for number, store in enumerate(stores):
            tasks.start_soon(fight, store, f"writer-{number}")
        for _ in range(15):
            await to_thread.run_sync(drop_lease, server, database)
        over.set()
    _, rows = await stores[0].peek(header.id)
    for store in stores:
        await store.aclose()

    kept = [row.title for row in rows if isinstance(row, SessionTitle)]
    assert kept
    assert [int(title.rpartition("-")[2]) for title in kept] == list(range(len(kept)))
    assert set(acknowledged) <= set(kept)
    assert refused <= {"locked", "io"}
