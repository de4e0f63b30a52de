"""Answers `session/fork`: a session that goes on from another's whole turns. Unstable in ACP.

https://agentclientprotocol.com/protocol/v1/draft/session-fork
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.methods.setup import checked_setup
from acp_server.rpc.pending import Pending
from acp_server.wire.params import LoadSessionParams, read


def session_fork(connection: Connection, /, **params: Any) -> Pending:
    """Make the child; the parent is only read, and recorded in the child."""
    request = read(LoadSessionParams, params)
    setup = checked_setup(request)
    return connection.spawn(
        lambda pending: connection.fork(pending, request.sessionId, setup), session_id=request.sessionId
    )
