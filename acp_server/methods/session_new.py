"""Answers `session/new`: a stored session with a running agent.

https://agentclientprotocol.com/protocol/v1/session-setup
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.methods.setup import checked_setup
from acp_server.rpc.pending import Pending
from acp_server.wire.params import NewSessionParams, read


def session_new(connection: Connection, /, **params: Any) -> Pending:
    """Open a session; it is stored before the answer, so its id survives from then on."""
    request = read(NewSessionParams, params)
    setup = checked_setup(request)
    return connection.spawn(lambda pending: connection.open(pending, setup))
