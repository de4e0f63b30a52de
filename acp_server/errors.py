"""The only place where exceptions become JSON-RPC errors, and the codes they become.

Codes are ACP's: https://agentclientprotocol.com/protocol/v1/schema (ErrorCode). Words are ours; no
library's text and no `str` of an unknown exception ever leaves the process.
"""

from collections.abc import Mapping
from typing import Any, Final

from agent_loop import (
    Busy,
    ConfigError,
    Disposed,
    Duplicate,
    EndReason,
    HarnessError,
    NotFound,
    StoreError,
)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800
AUTH_REQUIRED: Final = -32000
RESOURCE_NOT_FOUND: Final = -32002


class RpcError(Exception):
    """An error response: `code`, one short sentence, and data a program can use."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def invalid_params(path: str, why: str) -> RpcError:
    """-32602 that names the parameter: `path` is spelled like `prompt[0].type`."""
    return RpcError(INVALID_PARAMS, f"Invalid params: {path} {why}", {"path": path})


def unknown_session(session_id: str) -> RpcError:
    """-32002 for a session that is not stored, or not active on this connection."""
    return RpcError(RESOURCE_NOT_FOUND, "Session not found", {"sessionId": session_id[:200]})


def cancelled_request() -> RpcError:
    """-32800 for a request the editor cancelled."""
    return RpcError(REQUEST_CANCELLED, "Request cancelled")


def turn_failed(reason: EndReason) -> RpcError:
    """-32603 in the provider's plain words, with the kind a client can act on."""
    data = {"kind": reason.error_kind or "unknown", **(reason.data or {})}
    return RpcError(INTERNAL_ERROR, reason.message, data)


def to_rpc_error(error: BaseException, *, session_id: str = "") -> RpcError:
    """What the editor is told of an exception that left a method."""
    match error:
        case RpcError():
            return error
        case NotFound():
            return unknown_session(session_id)
        case StoreError():
            return RpcError(INTERNAL_ERROR, str(error), {"kind": error.kind})
        case ConfigError(needs_auth=True):
            return RpcError(AUTH_REQUIRED, str(error))
        case ConfigError():
            data = {"kind": "config", "path": error.path, "line": error.line}
            return RpcError(INTERNAL_ERROR, str(error), {k: v for k, v in data.items() if v is not None})
        case Busy() | Duplicate():
            return RpcError(INVALID_REQUEST, str(error), {"kind": "busy"})
        case Disposed():
            return RpcError(INTERNAL_ERROR, "The server is shutting down", {"kind": "closed"})
        case HarnessError(code="CWD" | "ROOT"):
            name = "cwd" if error.code == "CWD" else "additionalDirectories"
            return RpcError(INVALID_PARAMS, f"Invalid params: {name}: {error}", {"path": name})
        case HarnessError():
            return RpcError(INTERNAL_ERROR, str(error), {"kind": error.code.lower()})
        case _:
            return RpcError(INTERNAL_ERROR, "Internal error; the server's log has the details")
