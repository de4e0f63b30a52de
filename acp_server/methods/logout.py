"""Answers `logout`: stored keys are forgotten.

https://agentclientprotocol.com/protocol/v1/authentication
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.rpc.pending import Pending


def logout(connection: Connection, /, **_: Any) -> Pending:
    """Sign out: new sessions need a new sign-in; those that are open keep their key until they are closed."""

    async def work(pending: Pending) -> None:
        await connection.harness.sign_in.sign_out()
        pending.settle({})

    return connection.spawn(work)
