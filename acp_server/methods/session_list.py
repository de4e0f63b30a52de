"""Answers `session/list`: stored sessions with a turn, newest first, a page at a time.

https://agentclientprotocol.com/protocol/v1/session-list
"""

from datetime import UTC, datetime
from typing import Any, Final

from acp_server.bridge.connection import Connection
from acp_server.errors import invalid_params
from acp_server.rpc.pending import Pending
from acp_server.wire.params import ListSessionsParams, read
from agent_loop import SessionSummary

PAGE: Final = 50


def session_list(connection: Connection, /, **params: Any) -> Pending:
    """List without reading any log; `cwd` is compared by real path."""
    request = read(ListSessionsParams, params)
    if request.cwd is not None and not request.cwd.startswith("/"):
        raise invalid_params("cwd", "must be an absolute path")

    async def work(pending: Pending) -> None:
        try:
            page = await connection.harness.store.list_sessions(
                cwd=request.cwd, cursor=request.cursor, limit=PAGE
            )
        except ValueError:
            raise invalid_params("cursor", "is not one of this list") from None
        result: dict[str, Any] = {"sessions": [_info(summary) for summary in page.sessions]}
        if page.cursor is not None:
            result["nextCursor"] = page.cursor
        pending.settle(result)

    return connection.spawn(work)


def _info(summary: SessionSummary) -> dict[str, Any]:
    info: dict[str, Any] = {"sessionId": summary.header.id, "cwd": summary.header.cwd or ""}
    if summary.title:
        info["title"] = summary.title
    info["updatedAt"] = datetime.fromtimestamp(summary.updated_at / 1000, UTC).isoformat(
        timespec="milliseconds"
    )
    return info
