"""Finds stored sessions the way a person names them: all of them, or by the beginning of an id."""

from collections.abc import Sequence
from typing import Final

from agent_loop import NotFound, SessionSummary, Store

PAGE: Final = 200
SHORT_ID_CHARS: Final = 8


async def every_session(store: Store, cwd: str | None = None) -> list[SessionSummary]:
    """Every session with at least one turn, newest first; only those that work in `cwd` when it is given."""
    found: list[SessionSummary] = []
    cursor = None
    while True:
        page = await store.list_sessions(cwd=cwd, cursor=cursor, limit=PAGE)
        found += page.sessions
        cursor = page.cursor
        if cursor is None:
            return found


async def full_id(store: Store, given: str) -> str:
    """The id a beginning stands for; as given when nothing listed begins so, for the store to refuse.

    Raises:
        NotFound: More than one session begins so.
    """
    ids = [
        each.header.id for each in await every_session(store) if given and each.header.id.startswith(given)
    ]
    if given in ids or not ids:
        return given
    if len(ids) > 1:
        shown = ", ".join(sorted(ids)[:5]) + (", …" if len(ids) > 5 else "")
        raise NotFound(f"{len(ids)} sessions begin with {given}: {shown}")
    return ids[0]


def short_width(ids: Sequence[str]) -> int:
    """How many characters of them tell these ids apart."""
    width = SHORT_ID_CHARS
    while len({each[:width] for each in ids}) < len(ids):
        width += 1
    return width
