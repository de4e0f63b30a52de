"""Ways to sign in as the protocol's `authMethods`. Pure.

Schema: https://agentclientprotocol.com/protocol/v1/authentication
"""

from collections.abc import Iterator, Sequence
from typing import Any

from agent_loop import Way


def auth_methods(ways: Sequence[Way], *, terminal: bool) -> list[dict[str, Any]]:
    """What `initialize` advertises.

    Args:
        terminal: Whether the editor runs logins in a terminal; only then it may be told of them.
    """
    return [method for way in ways for method in _methods(way, terminal=terminal)]


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
