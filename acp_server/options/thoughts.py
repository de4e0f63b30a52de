"""How long a model thinks before it answers, as an option.

Source: https://agentclientprotocol.com/protocol/v1/session-config-options
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from acp_server.errors import invalid_params
from agent_loop import ThoughtLevel

THOUGHT: Final = "thought_level"
DEFAULT: Final = "default"

_SAID: Final[Mapping[ThoughtLevel, str]] = {"low": "Low", "medium": "Medium", "high": "High"}


def thought_option(current: ThoughtLevel | None, levels: Sequence[ThoughtLevel]) -> dict[str, Any]:
    """The option of a model that can be told how long to think."""
    choices = [{"value": level, "name": _SAID[level]} for level in levels]
    return {
        "id": THOUGHT,
        "name": "Thinking",
        "description": "How much the model thinks before it answers.",
        "category": "thought_level",
        "type": "select",
        "currentValue": current or DEFAULT,
        "options": [{"value": DEFAULT, "name": "Default"}, *choices],
    }


def thought_in(text: str, levels: Sequence[ThoughtLevel], path: str) -> ThoughtLevel | None:
    """The level an editor names; None for the default.

    Args:
        path: The parameter that names it.
    Raises:
        RpcError: -32602, there is none of that name.
    """
    if text == DEFAULT:
        return None
    for level in levels:
        if level == text:
            return level
    raise invalid_params(path, f"is {text[:100]!r}, which is none of {', '.join((DEFAULT, *levels))}")
