"""Answers `session/load` and `session/resume`: a stored session, with or without a replay.

https://agentclientprotocol.com/protocol/v1/session-setup (loading and resuming sessions)
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.methods.setup import checked_setup
from acp_server.rpc.pending import Pending
from acp_server.wire.params import LoadSessionParams, read


def session_load(connection: Connection, /, **params: Any) -> Pending:
    """Replay the conversation, then answer."""
    return _load(connection, params, replayed=True)


def session_resume(connection: Connection, /, **params: Any) -> Pending:
    """Restore the conversation and answer; nothing is shown again."""
    return _load(connection, params, replayed=False)


def _load(connection: Connection, params: dict[str, Any], *, replayed: bool) -> Pending:
    request = read(LoadSessionParams, params)
    setup = checked_setup(request)
    connection.reserve(request.sessionId)

    async def work(pending: Pending) -> None:
        try:
            await connection.load(pending, request.sessionId, setup, replayed=replayed)
        finally:
            connection.release(request.sessionId)

    return connection.spawn(work, session_id=request.sessionId)
