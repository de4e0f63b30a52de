"""What the list of a PostgreSQL store shows: noted as rows are written, read back page by page.

Owns what a row adds to a session's entry, and which spellings of a directory are one. Cursors belong to
`listing`, the statements to `postgres_sql`. Of the rules of `postgres` only the fourth matters here: a page
may be read twice.
"""

import os
from collections.abc import Sequence
from typing import Any

import orjson
from anyio import to_thread

from agent_loop.events.facts import LogRow, SessionTitle, TurnStart, UserMessage
from agent_loop.messages import text_of
from agent_loop.persistence import postgres_sql as sql
from agent_loop.persistence.listing import cursor_of
from agent_loop.persistence.postgres_connections import Connection
from agent_loop.persistence.store import Page, SessionSummary
from agent_loop.session.header import header_from_json
from agent_loop.session.titles import title_from


async def read_page(
    connection: Connection, cwd: str | None, after: tuple[int, str] | None, limit: int
) -> Page:
    """At most `limit` sessions behind the place `after`, newest first; None begins at the newest."""
    asked: list[Any] = [limit + 1]
    wanted = ["has_turn"]
    if cwd is not None:
        known = await connection.fetch(sql.CWDS)
        asked.append(await to_thread.run_sync(_same_place, [it["cwd"] for it in known], cwd))
        wanted.append(f"cwd = ANY(${len(asked)}::text[])")
    if after is not None:
        asked += after
        wanted.append(f"(updated_at, id) < (${len(asked) - 1}, ${len(asked)})")
    found = await connection.fetch(sql.list_where(wanted), *asked)

    shown = found[:limit]
    sessions = tuple(filter(None, map(_summary, shown)))
    if len(found) == len(shown):
        return Page(sessions, None)
    return Page(sessions, cursor_of(shown[-1]["updated_at"], shown[-1]["id"]))


def listed(rows: Sequence[LogRow]) -> tuple[bool, str | None, str]:
    """What the list shows because of these rows: a turn, a title, the first words."""
    names = [row.title for row in rows if isinstance(row, SessionTitle)]
    prompts = (title_from(text_of(row.content)) for row in rows if isinstance(row, UserMessage))
    return (
        any(isinstance(row, TurnStart) for row in rows),
        _text(names[-1]) if names else None,
        _text(next(filter(None, prompts), "")),
    )


def _same_place(known: list[str], cwd: str) -> list[str]:
    """Those spellings that lead to `cwd` on this machine."""
    real = os.path.realpath(cwd)
    return [it for it in known if os.path.realpath(it) == real]


def _summary(found: Any) -> SessionSummary | None:
    """None for a header that another version wrote."""
    try:
        header = header_from_json(orjson.loads(found["header"]))
    except ValueError:
        return None
    return SessionSummary(header, found["title"], found["updated_at"])


def _text(words: str) -> str:
    """PostgreSQL's text has no NUL."""
    return words.replace("\0", "")
