"""What is known of a session before its first fact."""

from typing import Any

from agent_loop.messages import Json
from agent_loop.record import record

HEADER_VERSION = 1


@record
class SessionHeader:
    """The first row of a session's log; never changes.

    Attributes:
        created_at: Milliseconds since the epoch.
        cwd: Absolute directory the session works in, as the editor spelled it; None without one.
        parent: Id of the session this one was forked from, or None.
    """

    id: str
    created_at: int
    cwd: str | None = None
    parent: str | None = None
    version: int = HEADER_VERSION


def header_to_json(header: SessionHeader) -> Json:
    """The header row; `header_from_json` is the way back."""
    row: Json = {
        "type": "session",
        "version": header.version,
        "id": header.id,
        "createdAt": header.created_at,
    }
    if header.cwd is not None:
        row["cwd"] = header.cwd
    if header.parent is not None:
        row["parent"] = header.parent
    return row


def header_from_json(row: Any) -> SessionHeader:
    """The header a row stands for.

    Raises:
        ValueError: The row is no session header, or of a version this one cannot read.
    """
    if not isinstance(row, dict) or row.get("type") != "session":
        raise ValueError("not a session log: its first row is no header")
    if row.get("version") != HEADER_VERSION:
        raise ValueError(f"session log of version {row.get('version')!r}; this server reads {HEADER_VERSION}")

    match row:
        case {"id": str(session_id), "createdAt": int(created_at)}:
            cwd, parent = row.get("cwd"), row.get("parent")
        case _:
            raise ValueError("not a session log: its header lacks an id or a time")
    if not isinstance(cwd, str | None) or not isinstance(parent, str | None):
        raise ValueError("not a session log: cwd and parent must be text")
    return SessionHeader(session_id, created_at, cwd, parent)
