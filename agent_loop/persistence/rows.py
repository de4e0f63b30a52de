"""What every durable store asks of ids and rows before it writes them, and the words it refuses with."""

from collections.abc import Iterable
from typing import Final

import orjson

from agent_loop.errors import Duplicate, NotFound, StoreError
from agent_loop.events.facts import LogRow, facts_in
from agent_loop.persistence.paths import is_session_id

_SHOWN_ID_CHARS: Final = 64


def require_new_id(session_id: str) -> None:
    """Raises ValueError for an id that no store would find again."""
    if not is_session_id(session_id):
        raise ValueError(f"{shown(session_id)} is no session id: 1 to 128 of A-Z a-z 0-9 . _ - are")


def require_id(session_id: str) -> None:
    """Raises NotFound for an id that no store can have made."""
    if not is_session_id(session_id):
        raise NotFound(f"There is no session {shown(session_id)}.")


def checked_places(session_id: str, rows: Iterable[LogRow], first_seq: int, next_seq: int) -> int:
    """The place behind `rows`, once they are found to stand where they say.

    Raises:
        ValueError: They do not begin at `next_seq`, or leave a gap.
    """
    if first_seq != next_seq:
        raise ValueError(f"session {session_id} goes on at seq {next_seq}, not at {first_seq}")
    for row in rows:
        if row.seq != next_seq:
            raise ValueError(f"session {session_id}: a fact with seq {row.seq} stands in place {next_seq}")
        next_seq += facts_in(row)
    return next_seq


def line(row: object, name: str) -> bytes:
    """A row as one line of JSON, its newline included; ValueError names what JSON cannot carry."""
    try:
        return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError as error:
        raise ValueError(f"{name} cannot be written as JSON: {error}") from error


def taken(session_id: str) -> Duplicate:
    return Duplicate(f"Session {session_id} is stored already.")


def unknown(session_id: str) -> NotFound:
    return NotFound(f"There is no session {session_id}.")


def not_open(session_id: str) -> NotFound:
    return NotFound(f"Session {shown(session_id)} is not open; create or load it first.")


def locked(session_id: str) -> StoreError:
    return StoreError(
        "locked", f"Session {session_id} is open in another process; close it there, or end that process."
    )


def shown(session_id: str) -> str:
    """An id from outside, fit for a message."""
    return repr(session_id[:_SHOWN_ID_CHARS])
