"""Answers `_agent_loop/rename`, our extension: the person names a session. Advertised in `initialize`."""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.errors import invalid_params
from acp_server.wire.params import RenameParams, read
from agent_loop import SessionTitle, clean_text, one_line

TITLE_LIMIT_CHARS = 200


def rename(connection: Connection, /, **params: Any) -> dict[str, Any]:
    """Log the title; the update goes out before the answer, and no title of ours replaces it."""
    request = read(RenameParams, params)
    record = connection.record(request.sessionId)
    title = one_line(clean_text(request.title))[:TITLE_LIMIT_CHARS]
    if not title:
        raise invalid_params("title", "is empty")
    record.handle.agent.session.log.append(SessionTitle(title, "user"))
    return {}
