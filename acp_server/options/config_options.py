"""Config options: everything that can be chosen for a session, the newer form of modes among it.

Source: https://agentclientprotocol.com/protocol/v1/session-config-options
"""

from typing import Any, Final

from acp_server.options.modes import modes
from acp_server.options.thoughts import thought_option
from agent_loop import ModelState, PermissionMode

MODE: Final = "mode"
MODEL: Final = "model"


def config_options(mode: PermissionMode, models: ModelState) -> list[dict[str, Any]]:
    """Every option with its current value, the most important first; one model is shown, too: it answers."""
    options = [_mode_option(mode), _model_option(models)]
    if models.thoughts:
        options.append(thought_option(models.thought, models.thoughts))
    return options


def _mode_option(mode: PermissionMode) -> dict[str, Any]:
    choices = [
        {"value": each["id"], "name": each["name"], "description": each["description"]}
        for each in modes(mode)["availableModes"]
    ]
    return {
        "id": MODE,
        "name": "Mode",
        "description": "How freely tools may act.",
        "category": "mode",
        "type": "select",
        "currentValue": mode,
        "options": choices,
    }


def _model_option(models: ModelState) -> dict[str, Any]:
    several = len({name.partition("/")[0] for name in models.offered}) > 1
    return {
        "id": MODEL,
        "name": "Model",
        "description": "Who answers, from the next step on.",
        "category": "model",
        "type": "select",
        "currentValue": models.current,
        "options": [
            {"value": name, "name": name if several else name.partition("/")[2]} for name in models.offered
        ],
    }
