"""What a mode says of an effect. Pure."""

from typing import Literal

from agent_loop.tools.tool import Effect

PermissionMode = Literal["ask", "full-auto"]
Verdict = Literal["allow", "ask"]


def verdict(mode: PermissionMode, effect: Effect) -> Verdict:
    """Whether a call may run unasked. Staying inside the roots is the tools' own rule, in every mode."""
    if mode == "full-auto" or effect.kind in ("none", "read"):
        return "allow"
    return "ask"
