"""The tables a PostgreSQL store keeps sessions in, and how older ones become today's.

`schema_version` holds one number: how many migrations have run. They run inside one transaction, under
a lock, when a process connects for the first time; a process that finds a higher number leaves all alone.
"""

from typing import Any, Final

from agent_loop.errors import StoreError

_Connection = Any  # asyncpg is annotated only halfway

_MIGRATING: Final = 0x6163705F73657373
"""An advisory lock's key; spells `acp_sess`."""

# Rows are text, not jsonb: they come back byte for byte, and `row::json` reads them.
# COLLATE "C": the order of ids must be the one `(updated_at, id) < (…)` and Python agree on.
MIGRATIONS: Final[tuple[str, ...]] = (
    """
    CREATE TABLE sessions (
        id text COLLATE "C" PRIMARY KEY,
        header jsonb NOT NULL,
        created_at bigint NOT NULL,
        updated_at bigint NOT NULL,
        cwd text,
        parent text,
        title text,
        first_words text NOT NULL DEFAULT '',
        has_turn boolean NOT NULL DEFAULT false,
        next_seq bigint NOT NULL DEFAULT 0,
        claim uuid NOT NULL
    );

    CREATE INDEX sessions_listed ON sessions (updated_at DESC, id DESC) WHERE has_turn;
    CREATE INDEX sessions_by_cwd ON sessions (cwd, updated_at DESC, id DESC) WHERE has_turn;

    CREATE TABLE facts (
        session_id text COLLATE "C" NOT NULL REFERENCES sessions ON DELETE CASCADE,
        seq bigint NOT NULL,
        n integer NOT NULL,
        row text NOT NULL,
        PRIMARY KEY (session_id, seq)
    );
    """,
)
"""Only ever added to: what is here has run somewhere."""


async def migrate(connection: _Connection) -> None:
    """Bring the tables up to date.

    Raises:
        StoreError: `version`, a newer server has been here.
    """
    if await _version(connection) == len(MIGRATIONS):
        return
    # The lock comes before the transaction: one that has begun may not see tables made while it waited.
    await connection.execute("SELECT pg_advisory_lock($1)", _MIGRATING)
    try:
        async with connection.transaction():
            await _migrate(connection, await _version(connection))
    finally:
        await connection.execute("SELECT pg_advisory_unlock($1)", _MIGRATING)


async def _migrate(connection: _Connection, version: int) -> None:
    if version > len(MIGRATIONS):
        raise StoreError(
            "version",
            f"The database's tables have version {version}; this server knows {len(MIGRATIONS)}."
            " Use the version that made them, or a newer one.",
        )
    if version == 0:
        await connection.execute("CREATE TABLE schema_version (version integer NOT NULL)")
        await connection.execute("INSERT INTO schema_version VALUES (0)")
    for migration in MIGRATIONS[version:]:
        await connection.execute(migration)
    await connection.execute("UPDATE schema_version SET version = $1", len(MIGRATIONS))


async def _version(connection: _Connection) -> int:
    if await connection.fetchval("SELECT to_regclass('schema_version')") is None:
        return 0
    found = await connection.fetchval("SELECT version FROM schema_version")
    return int(found)
