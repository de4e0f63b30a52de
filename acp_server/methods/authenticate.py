"""Signing in and out: what `initialize` advertises for it, and the answers to `authenticate` and `logout`.

https://agentclientprotocol.com/protocol/v1/authentication
"""

from collections.abc import Iterator, Sequence
from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.errors import invalid_params
from acp_server.rpc.pending import Pending
from acp_server.wire.params import AuthenticateParams, read
from agent_loop import Way


def auth_methods(ways: Sequence[Way], *, terminal: bool) -> list[dict[str, Any]]:
    """Ways to sign in as `authMethods`.

    Args:
        terminal: Whether the editor runs logins in a terminal; only then it may be told of them.
    """
    return [method for way in ways for method in _methods(way, terminal=terminal)]


def authenticate(connection: Connection, /, **params: Any) -> Pending:
    """Look whether a way leads there now; those for a terminal are run by the editor, not chosen here."""
    request = read(AuthenticateParams, params)
    sign_in = connection.harness.sign_in
    known = [way.id for way in sign_in.ways()]
    if request.methodId not in known:
        right = f"it can be {', '.join(known)}" if known else "no method is advertised"
        raise invalid_params("methodId", f"is {request.methodId[:100]!r}; {right}")

    async def work(pending: Pending) -> None:
        await sign_in.choose(request.methodId)
        pending.settle({})

    return connection.spawn(work)


def logout(connection: Connection, /, **_: Any) -> Pending:
    """Forget stored keys: new sessions need a new sign-in; open ones keep their key until they are closed."""

    async def work(pending: Pending) -> None:
        await connection.harness.sign_in.sign_out()
        pending.settle({})

    return connection.spawn(work)


def _methods(way: Way, *, terminal: bool) -> Iterator[dict[str, Any]]:
    if not way.needs_key:
        yield {
            "id": way.id,
            "name": "Ollama on this machine",
            "description": "Uses the first model that Ollama has; no key is needed.",
        }
        return

    variable = f"Set {way.variable} in the environment of the server, or run" if way.variable else "Run"
    yield {
        "id": way.id,
        "name": f"A key for {way.provider}",
        "description": f"{variable} `acp-server login {way.provider}` in a terminal. "
        "Choosing this looks whether a key is there now.",
    }
    if terminal:
        yield {
            "type": "terminal",
            "id": f"{way.provider}-login",
            "name": f"Log in to {way.provider}",
            "description": "Asks for the key in a terminal, and stores it.",
            "args": ["login", way.provider],
        }
