"""Which model an editor names."""

from typing import Final

from acp_server.errors import invalid_params
from agent_loop import ModelState

_LISTED: Final = 20


def model_in(text: str, models: ModelState, path: str) -> str:
    """The model an editor names.

    Args:
        path: The parameter that names it.
    Raises:
        RpcError: -32602, it is none of those that can be chosen.
    """
    if text in models.offered:
        return text
    more = len(models.offered) - _LISTED
    others = f" and {more} more" if more > 0 else ""
    raise invalid_params(
        path, f"is {text[:100]!r}, which is none of {', '.join(models.offered[:_LISTED])}{others}"
    )
