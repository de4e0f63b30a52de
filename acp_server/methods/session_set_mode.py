"""Answers `session/set_mode`: how freely tools may act from their next call on.

https://agentclientprotocol.com/protocol/v1/session-modes
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.options.modes import mode_in
from acp_server.wire.params import SetModeParams, read


def session_set_mode(connection: Connection, /, **params: Any) -> dict[str, Any]:
    """Change the mode, idle or mid-turn; the updates go out before the answer."""
    request = read(SetModeParams, params)
    record = connection.record(request.sessionId)
    connection.harness.permission.set_mode(record.id, mode_in(request.modeId, "modeId"))
    return {}
