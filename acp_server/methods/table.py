"""Which method answers to which name."""

from collections.abc import Callable
from typing import Any, Final

from acp_server.bridge.connection import Connection
from acp_server.errors import INVALID_REQUEST, RpcError
from acp_server.methods.authenticate import authenticate, logout
from acp_server.methods.cancel_request import cancel_request
from acp_server.methods.initialize import initialize
from acp_server.methods.rename import rename
from acp_server.methods.session_cancel import session_cancel
from acp_server.methods.session_close import session_close
from acp_server.methods.session_delete import session_delete
from acp_server.methods.session_fork import session_fork
from acp_server.methods.session_list import session_list
from acp_server.methods.session_load import session_load, session_resume
from acp_server.methods.session_new import session_new
from acp_server.methods.session_prompt import session_prompt
from acp_server.methods.session_set_config_option import session_set_config_option
from acp_server.methods.session_set_mode import session_set_mode
from acp_server.methods.session_set_model import session_set_model
from acp_server.methods.steer import steer

Method = Callable[..., Any]

_AFTER_INITIALIZE: Final[dict[str, Method]] = {
    "authenticate": authenticate,
    "logout": logout,
    "session/new": session_new,
    "session/load": session_load,
    "session/resume": session_resume,
    "session/fork": session_fork,
    "session/list": session_list,
    "session/close": session_close,
    "session/delete": session_delete,
    "session/prompt": session_prompt,
    "session/set_mode": session_set_mode,
    "session/set_config_option": session_set_config_option,
    "session/set_model": session_set_model,
    "_agent_loop/rename": rename,
    "_agent_loop/steer": steer,
}


def methods() -> dict[str, Method]:
    """Every method, by its name on the wire; requests other than `initialize` are refused before it."""
    return {
        "initialize": initialize,
        **{name: _gated(method) for name, method in _AFTER_INITIALIZE.items()},
        # Notifications that find nothing to stop are no-ops anyway.
        "session/cancel": session_cancel,
        "$/cancel_request": cancel_request,
    }


def _gated(method: Method) -> Method:
    def call(connection: Connection, /, **params: Any) -> Any:
        if not connection.initialized:
            raise RpcError(INVALID_REQUEST, "Invalid request: call initialize first")
        return method(connection, **params)

    return call
