"""What `session/new`, `load`, `resume` and `fork` have in common: the checks on what the editor hands over.

Source: https://agentclientprotocol.com/protocol/v1/session-setup
"""

from typing import Any

from acp_server.bridge.setup import Setup
from acp_server.errors import invalid_params
from acp_server.wire.params import NewSessionParams

TRANSPORTS = ("http", "sse")


def checked_setup(request: NewSessionParams) -> Setup:
    """Check the parts a schema cannot; whether directories exist is seen when the session is made.

    Raises:
        RpcError: -32602 naming the parameter.
    """
    _require_absolute(request.cwd, "cwd")
    for at, path in enumerate(request.additionalDirectories):
        _require_absolute(path, f"additionalDirectories[{at}]")
    names = [_server_name(server, f"mcpServers[{at}]") for at, server in enumerate(request.mcpServers)]
    warnings = (f"MCP servers are not supported yet; not connected: {', '.join(names)}",) if names else ()
    return Setup(request.cwd, tuple(request.additionalDirectories), warnings)


def _require_absolute(path: Any, name: str) -> None:
    if not isinstance(path, str) or not path.startswith("/"):
        raise invalid_params(name, "must be an absolute path")
    if "\0" in path:
        raise invalid_params(name, "must not contain NUL")


def _server_name(server: Any, path: str) -> str:
    if not isinstance(server, dict):
        raise invalid_params(path, "must be an object")
    name, kind = server.get("name"), server.get("type", "stdio")
    if not isinstance(name, str) or not name:
        raise invalid_params(f"{path}.name", "must be a string")
    if kind in TRANSPORTS:
        raise invalid_params(f"{path}.type", f"is {kind!r}, which this agent does not advertise")
    if kind != "stdio":
        raise invalid_params(f"{path}.type", "is not a transport this agent knows")
    if not isinstance(server.get("command"), str):
        raise invalid_params(f"{path}.command", "must be a string")
    for key in ("args", "env"):
        if not isinstance(server.get(key) or [], list):
            raise invalid_params(f"{path}.{key}", "must be an array")
    return name
