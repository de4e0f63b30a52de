"""What a PostgreSQL store says to its database, statement by statement.

Owns the words alone. The tables they speak of belong to `postgres_schema`; when each is said, to `postgres`.
Keeps rule 2 of `postgres`: facts change only behind a fence, the row of a session whose claim is still the
writer's. And its part of rule 4: each statement may be said twice.
"""

from collections.abc import Iterable
from typing import Final

_NOW_MS: Final = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

LOCK: Final = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))"
UNLOCK: Final = "SELECT pg_advisory_unlock(hashtextextended($1, 0))"
UNLOCK_ALL: Final = "SELECT pg_advisory_unlock_all()"

# The last line makes a repeated INSERT, whose first answer got lost, find its own row.
CREATE: Final = f"""
    INSERT INTO sessions (id, header, created_at, updated_at, cwd, parent, claim)
    VALUES ($1, $2, $3, {_NOW_MS}, $4, $5, $6)
    ON CONFLICT (id) DO UPDATE SET id = excluded.id WHERE sessions.claim = excluded.claim
    RETURNING true
"""

CLAIM: Final = "UPDATE sessions SET claim = $2 WHERE id = $1 RETURNING header::text"
CLAIM_OF: Final = "SELECT claim FROM sessions WHERE id = $1"

HEADER: Final = "SELECT header::text FROM sessions WHERE id = $1"
ROWS: Final = "SELECT row FROM facts WHERE session_id = $1 ORDER BY seq"
NEXT_SEQ: Final = "SELECT next_seq FROM sessions WHERE id = $1"

# set_config stands where it is sure to run, inside the statement's own transaction: no round trip more.
WRITE: Final = f"""
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

CUT: Final = """
    WITH fence AS (
        UPDATE sessions SET next_seq = $3 WHERE id = $1 AND claim = $2 RETURNING id
    )
    DELETE FROM facts USING fence WHERE session_id = fence.id AND seq >= $3
"""

IS_KNOWN: Final = "SELECT true FROM sessions WHERE id = $1"
DELETE: Final = "DELETE FROM sessions WHERE id = $1"

CWDS: Final = "SELECT DISTINCT cwd FROM sessions WHERE has_turn AND cwd IS NOT NULL"


def list_where(conditions: Iterable[str]) -> str:
    """The newest sessions that meet every condition; `$1` is how many at most."""
    return (
        "SELECT id, header::text, coalesce(title, first_words) AS title, updated_at FROM sessions"
        f" WHERE {' AND '.join(conditions)} ORDER BY updated_at DESC, id DESC LIMIT $1"
    )
