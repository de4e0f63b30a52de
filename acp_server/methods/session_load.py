"""Answers `session/load`: a stored session, replayed.

https://agentclientprotocol.com/protocol/v1/session-setup (loading sessions)
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.methods.setup import checked_setup
from acp_server.rpc.pending import Pending
from acp_server.wire.params import LoadSessionParams, read


def session_load(connection: Connection, /, **params: Any) -> Pending:
    """Replay the conversation, then answer."""
    request = read(LoadSessionParams, params)
    warnings = checked_setup(request)
    connection.reserve(request.sessionId)

    async def work(pending: Pending) -> None:
        try:
            await connection.load(pending, request.sessionId, request.cwd, warnings)
        finally:
            connection.release(request.sessionId)

    return connection.spawn(work, session_id=request.sessionId)
