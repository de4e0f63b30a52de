"""Reads a session's log from its bytes, and says what is wrong with one that cannot be read.

1. Only rows that end in a newline count; the first is the header.
2. A log is whole when its rows are contiguous from 0 and its last fact of a turn or step is a `turn/end`;
   facts of the session may stand anywhere.
3. Damage with a `turn/end` behind it is corruption; damage at the very end is a log left `unclosed`.
4. A row of a type this version does not know is neither: a newer version wrote it.
"""

from typing import Any, Final, get_args

import orjson

from agent_loop.errors import StoreError
from agent_loop.events.facts import AssistantRun, LoggedFact, LogRow, TurnEnd, facts_in
from agent_loop.events.facts_json import row_from_json
from agent_loop.session.header import HEADER_VERSION, SessionHeader, header_from_json

_KNOWN_TYPES: Final = frozenset(fact.TYPE for fact in (*get_args(LoggedFact), AssistantRun))


def read_log(data: bytes, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
    """The header and rows of session `session_id`.

    Raises:
        StoreError: `corrupt`, `version` or `unclosed`; see the rules above.
    """
    header_line, *lines = data.split(b"\n")
    if not lines:
        raise StoreError("corrupt", f"The log of session {session_id} has no header.")

    header = _read_header(header_line, session_id)
    torn = lines.pop()
    facts = _read_facts(lines, session_id)
    if torn or not _is_closed(facts):
        raise _unclosed(session_id)
    return header, facts


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


def _read_facts(lines: list[bytes], session_id: str) -> list[LogRow]:
    rows: list[LogRow] = []
    next_seq = 0
    for at, line in enumerate(lines):
        try:
            row = row_from_json(orjson.loads(line))
        except ValueError as error:
            raise _damage(lines, at, next_seq, session_id) from error

        if row.seq != next_seq:
            raise _damage(lines, at, next_seq, session_id)
        rows.append(row)
        next_seq += facts_in(row)
    return rows


def _is_closed(facts: list[LogRow]) -> bool:
    last = next((fact for fact in reversed(facts) if fact.SCOPE != "session"), None)
    return last is None or isinstance(last, TurnEnd)


def _damage(lines: list[bytes], at: int, seq: int, session_id: str) -> StoreError:
    row = _row(lines[at])
    kind = row.get("type")

    if row.get("seq") == seq and isinstance(kind, str) and kind not in _KNOWN_TYPES:
        return StoreError(
            "version", f"The log of session {session_id} holds {kind!r}, which this version does not know."
        )
    if any(_row(line).get("type") == TurnEnd.TYPE for line in lines[at:]):
        return StoreError("corrupt", f"The log of session {session_id} is damaged at row {at + 2}.")
    return _unclosed(session_id)


def _unclosed(session_id: str) -> StoreError:
    return StoreError(
        "unclosed",
        f"Session {session_id} was cut off inside a turn and cannot be loaded; its log is untouched.",
    )


def _row(line: bytes) -> dict[str, Any]:
    """The row on a line; empty when there is none."""
    try:
        row = orjson.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}
