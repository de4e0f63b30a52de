"""Answers `authenticate`, which no session needs yet.

https://agentclientprotocol.com/protocol/v1/authentication
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.errors import invalid_params
from acp_server.wire.params import AuthenticateParams, read


def authenticate(connection: Connection, /, **params: Any) -> dict[str, Any]:
    """We advertise no method, so none can be chosen."""
    request = read(AuthenticateParams, params)
    raise invalid_params("methodId", f"is {request.methodId[:100]!r}, but no method is advertised")
