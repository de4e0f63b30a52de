"""What `session/new` and `session/load` have in common: the checks on what the editor hands over.

Source: https://agentclientprotocol.com/protocol/v1/session-setup
"""

from typing import Any

from acp_server.errors import invalid_params
from acp_server.wire.params import NewSessionParams

TRANSPORTS = ("http", "sse")


def checked_setup(request: NewSessionParams) -> list[str]:
    """Check the parts a schema cannot; what the person should know of what was not done.

    Raises:
        RpcError: -32602 naming the parameter.
    """
    if not request.cwd.startswith("/"):
        raise invalid_params("cwd", "must be an absolute path")
    if "\0" in request.cwd:
        raise invalid_params("cwd", "must not contain NUL")
    if request.additionalDirectories:
        raise invalid_params("additionalDirectories", "is not supported: this agent does not advertise it")
    names = [_server_name(server, f"mcpServers[{at}]") for at, server in enumerate(request.mcpServers)]
    if not names:
        return []
    return [f"MCP servers are not supported yet; not connected: {', '.join(names)}"]


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
