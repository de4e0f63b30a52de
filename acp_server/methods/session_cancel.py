"""Takes `session/cancel`: stops the running turn and everything that waits.

https://agentclientprotocol.com/protocol/v1/prompt-turn (cancellation)
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.wire.params import SessionParams, read


def session_cancel(connection: Connection, /, **params: Any) -> None:
    """Stop the running turn and every waiting prompt, now; an unknown session is ignored."""
    record = connection.find(read(SessionParams, params).sessionId)
    if record is not None:
        record.cancel()
