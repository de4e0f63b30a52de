"""What a mode says of an effect. Pure."""

from typing import Literal, assert_never

from agent_loop.events.facts import PermissionMode
from agent_loop.record import record
from agent_loop.tools.tool import Effect

Verdict = Literal["allow", "ask", "deny"]


@record
class Ruling:
    """What a person said beforehand of a call, and in which words; `ask`: each time."""

    verdict: Verdict
    text: str


def verdict(mode: PermissionMode, effect: Effect, *, inside: bool) -> Verdict:
    """Whether a call may run unasked. Staying inside the roots is the tools' own rule, in every mode.

    Args:
        inside: All it touches is surely inside the roots; edits that are free are free there.

    A fetch changes nothing here but tells somebody something, so it asks even while planning. A delete
    or a move asks among edits that are free: what it takes away is no part of the diff a person reads.
    """
    if effect.kind in ("none", "read"):
        return "allow"
    match mode:
        case "ask":
            return "ask"
        case "accept-edits":
            return "allow" if effect.kind == "write" and inside else "ask"
        case "plan":
            return "ask" if effect.kind == "fetch" else "deny"
        case "full-auto":
            return "allow"
        case _:
            assert_never(mode)
