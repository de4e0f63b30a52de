"""Answers `session/delete`: gone from lists and from disk.

https://agentclientprotocol.com/protocol/v1/session-delete
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.rpc.pending import Pending
from acp_server.wire.params import SessionParams, read


def session_delete(connection: Connection, /, **params: Any) -> Pending:
    """Delete; twice, or what never was, succeeds as well."""
    session_id = read(SessionParams, params).sessionId
    connection.require_not_loading(session_id)
    record = connection.retire(session_id)
    return connection.spawn(
        lambda pending: connection.delete(pending, session_id, record), session_id=session_id
    )
