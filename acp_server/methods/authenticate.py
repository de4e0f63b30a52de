"""Answers `authenticate`: looks whether a way to sign in leads there now.

https://agentclientprotocol.com/protocol/v1/authentication
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.errors import invalid_params
from acp_server.rpc.pending import Pending
from acp_server.wire.params import AuthenticateParams, read


def authenticate(connection: Connection, /, **params: Any) -> Pending:
    """Sign in by one of the advertised methods; those for a terminal are run by the editor, not chosen here."""
    request = read(AuthenticateParams, params)
    sign_in = connection.harness.sign_in
    known = [way.id for way in sign_in.ways()]
    if request.methodId not in known:
        right = f"one of {', '.join(known)}" if known else "nothing: no method is advertised"
        raise invalid_params("methodId", f"is {request.methodId[:100]!r}; it can be {right}")

    async def work(pending: Pending) -> None:
        await sign_in.choose(request.methodId)
        pending.settle({})

    return connection.spawn(work)
