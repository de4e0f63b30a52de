"""Takes `$/cancel_request`: stops one request, wherever it is.

https://agentclientprotocol.com/protocol/v1/cancellation
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.wire.params import CancelRequestParams, read


def cancel_request(connection: Connection, /, **params: Any) -> None:
    """Cancel one request in flight; unknown and finished ones are ignored."""
    connection.peer.cancel_request(read(CancelRequestParams, params).requestId)
