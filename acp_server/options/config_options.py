"""Config options: the newer form of what can be chosen for a session; the mode is the first of them.

Source: https://agentclientprotocol.com/protocol/v1/session-config-options
"""

from typing import Any, Final

from acp_server.options.modes import modes
from agent_loop import PermissionMode

MODE: Final = "mode"


def config_options(mode: PermissionMode) -> list[dict[str, Any]]:
    """Every option with its current value, the most important first."""
    choices = [
        {"value": each["id"], "name": each["name"], "description": each["description"]}
        for each in modes(mode)["availableModes"]
    ]
    return [
        {
            "id": MODE,
            "name": "Mode",
            "description": "How freely tools may act.",
            "category": "mode",
            "type": "select",
            "currentValue": mode,
            "options": choices,
        }
    ]
