"""Reads a session's log from its bytes: all that is whole, and where a crash tore it.

1. Only rows that end in a newline count; the first is the header.
2. The torn tail begins at the first row that is unterminated, unreadable or out of place.
3. Damage with a whole `step/end` or `turn/end` behind it is no torn tail but corruption.
4. A row of a type this version does not know is neither: a newer version wrote it.
"""

from typing import Any, Final, get_args

import orjson

from agent_loop.errors import StoreError
from agent_loop.events.facts import AssistantRun, LoggedFact, LogRow, StepEnd, TurnEnd, facts_in
from agent_loop.events.facts_json import row_from_json
from agent_loop.session.header import HEADER_VERSION, SessionHeader, header_from_json

_CLOSING: Final = (StepEnd.TYPE, TurnEnd.TYPE)
_KNOWN_TYPES: Final = frozenset(fact.TYPE for fact in (*get_args(LoggedFact), AssistantRun))


def read_log(data: bytes, session_id: str) -> tuple[SessionHeader, list[LogRow], int]:
    """The header and rows of session `session_id`, and how many bytes of `data` they are.

    Raises:
        StoreError: `corrupt` or `version`; see the rules above.
    """
    header_line, *lines = data.split(b"\n")
    if not lines:
        raise StoreError("corrupt", f"The log of session {session_id} has no header.")

    header = _read_header(header_line, session_id)
    rows, size = _read_rows(lines[:-1], session_id)
    return header, rows, len(header_line) + 1 + size


def _read_header(line: bytes, session_id: str) -> SessionHeader:
    row = _row(line)
    version = row.get("version")
    if row.get("type") == "session" and version != HEADER_VERSION:
        raise StoreError(
            "version",
            f"The log of session {session_id} has version {version!r}; this server reads {HEADER_VERSION}.",
        )

    try:
        header = header_from_json(row)
    except ValueError as error:
        raise StoreError("corrupt", f"The log of session {session_id} has a broken header.") from error

    if header.id != session_id:
        raise StoreError(
            "corrupt", f"The log of session {session_id} says that it belongs to another session."
        )
    return header


def _read_rows(lines: list[bytes], session_id: str) -> tuple[list[LogRow], int]:
    rows: list[LogRow] = []
    next_seq = size = 0
    for at, line in enumerate(lines):
        try:
            row = row_from_json(orjson.loads(line))
        except ValueError:
            row = None

        if row is None or row.seq != next_seq:
            _require_torn(lines[at:], at, next_seq, session_id)
            break
        rows.append(row)
        next_seq += facts_in(row)
        size += len(line) + 1
    return rows, size


def _require_torn(lines: list[bytes], at: int, seq: int, session_id: str) -> None:
    """Raises StoreError when damage at row `at` is more than a torn tail."""
    row = _row(lines[0])
    kind = row.get("type")

    if row.get("seq") == seq and isinstance(kind, str) and kind not in _KNOWN_TYPES:
        raise StoreError(
            "version",
            f"The log of session {session_id} holds {kind!r}, which this version does not know;"
            " the version that wrote it, or a newer one, can read it.",
        )
    if any(_row(line).get("type") in _CLOSING for line in lines):
        raise StoreError("corrupt", f"The log of session {session_id} is damaged at row {at + 2}.")


def _row(line: bytes) -> dict[str, Any]:
    """The row on a line; empty when there is none."""
    try:
        row = orjson.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}
