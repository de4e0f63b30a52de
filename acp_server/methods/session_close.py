"""Answers `session/close`: cancelled like by `session/cancel`, then freed.

https://agentclientprotocol.com/protocol/v1/session-setup (closing active sessions)
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.rpc.pending import Pending
from acp_server.wire.params import SessionParams, read


def session_close(connection: Connection, /, **params: Any) -> Pending:
    """The running prompt is answered first; the history stays."""
    record = connection.record(read(SessionParams, params).sessionId)
    connection.require_not_loading(record.id)
    connection.retire(record.id)
    return connection.spawn(lambda pending: connection.end(pending, record), session_id=record.id)
