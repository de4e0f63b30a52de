"""Session modes: how freely tools may act, as the editor shows it.

Source: https://agentclientprotocol.com/protocol/v1/session-modes
"""

from collections.abc import Mapping
from typing import Any, Final

from acp_server.errors import invalid_params
from agent_loop import PermissionMode

_SAID: Final[Mapping[PermissionMode, tuple[str, str]]] = {
    "ask": ("Ask", "Asks before anything is written, run or fetched."),
    "accept-edits": ("Accept edits", "Writes files of the project unasked; asks before everything else."),
    "plan": ("Plan", "Reads and plans; nothing is changed or run."),
    "full-auto": ("Full auto", "Acts without asking, except where a rule says otherwise."),
}


def modes(current: PermissionMode) -> dict[str, Any]:
    """The `modes` member of an answer that opens a session."""
    available = [
        {"id": mode, "name": name, "description": description} for mode, (name, description) in _SAID.items()
    ]
    return {"currentModeId": current, "availableModes": available}


def mode_in(text: str, path: str) -> PermissionMode:
    """The mode an editor names.

    Args:
        path: The parameter that names it.
    Raises:
        RpcError: -32602, there is none of that name.
    """
    for mode in _SAID:
        if mode == text:
            return mode
    raise invalid_params(path, f"is {text[:100]!r}, which is none of {', '.join(_SAID)}")
