"""Answers `initialize`: what version we speak, and what we can do.

https://agentclientprotocol.com/protocol/v1/initialization
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from acp_server.bridge.connection import Connection
from acp_server.methods.authenticate import auth_methods
from acp_server.wire.client import client_in
from acp_server.wire.params import InitializeParams, read

PROTOCOL_VERSION: Final = 1


def initialize(connection: Connection, /, **params: Any) -> dict[str, Any]:
    """Negotiate: we speak version 1 and say so, whatever was asked. May be called again."""
    request = read(InitializeParams, params)
    connection.initialized = True
    client = client_in(request.clientCapabilities)
    connection.meet(client)
    ways = connection.harness.sign_in.ways()
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentInfo": {"name": "acp-agent-server", "title": "ACP Agent Server", "version": own_version()},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": False},
            "mcpCapabilities": {"http": False, "sse": False},
            "sessionCapabilities": {
                "list": {},
                "resume": {},
                "close": {},
                "delete": {},
                "fork": {},
                "additionalDirectories": {},
            },
            **({"auth": {"logout": {}}} if ways else {}),
            "_meta": {
                "agent_loop": {"steer": True, "rename": True, "events": True, "unstable": ["session/fork"]}
            },
        },
        "authMethods": auth_methods(ways, terminal=client.logs_in),
    }


def own_version() -> str:
    """The installed version of this server; `0+unknown` when it runs uninstalled."""
    try:
        return version("acp-agent-server")
    except PackageNotFoundError:
        return "0+unknown"
