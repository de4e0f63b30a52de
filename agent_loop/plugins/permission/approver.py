"""The seam to whoever can ask the person."""

from typing import Protocol

from agent_loop.cards import Card
from agent_loop.events.facts import DecidedBy
from agent_loop.record import record
from agent_loop.tools.tool import Effect


@record
class PermissionRequest:
    """What the person is asked to allow: the very card they see, and nothing else will run."""

    session_id: str
    call_id: str
    card: Card
    effect: Effect


@record
class Decision:
    """Their answer. Anything that is not a clear yes is `allowed=False`.

    Attributes:
        option: The option they chose, for the record; None when they chose none.
    """

    allowed: bool
    by: DecidedBy
    option: str | None = None


OPTIONS: tuple[str, ...] = ("allow_once", "reject_once")
"""What a person can answer, in the order they are shown."""


class Approver(Protocol):
    """Asks one session's person."""

    async def ask(self, request: PermissionRequest) -> Decision:
        """Wait for the answer, without a deadline: the human may think. Cancelled with the turn."""
