"""The seam to whoever can ask the person."""

from typing import Final, Literal, Protocol

from agent_loop.cards import Card
from agent_loop.events.facts import DecidedBy
from agent_loop.record import record
from agent_loop.tools.tool import Effect

OptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


@record
class Option:
    """One answer a person can choose; `name` says exactly what it covers."""

    id: str
    kind: OptionKind
    name: str

    @property
    def allows(self) -> bool:
        """Whether choosing it is a yes."""
        return self.kind in ("allow_once", "allow_always")


ALLOW_ONCE: Final = Option("allow_once", "allow_once", "Allow once")
REJECT_ONCE: Final = Option("reject_once", "reject_once", "Reject")
ALLOW_SESSION: Final = "allow_session"
ALLOW_PROJECT: Final = "allow_project"
REJECT_PROJECT: Final = "reject_project"
"""Ids of the answers that are remembered."""


@record
class PermissionRequest:
    """What the person is asked to allow: the very card they see, and nothing else will run.

    Attributes:
        options: What they can answer, in the order to show it.
    """

    session_id: str
    call_id: str
    card: Card
    effect: Effect
    options: tuple[Option, ...] = (ALLOW_ONCE, REJECT_ONCE)


@record
class Decision:
    """Their answer, or whose else it was. Anything that is not a clear yes is `allowed=False`.

    Attributes:
        option: The id of the option they chose, for the record; None when they chose none.
        rule: The rule or mode that decided, in words; None when a person did.
    """

    allowed: bool
    by: DecidedBy
    option: str | None = None
    rule: str | None = None


class Approver(Protocol):
    """Asks one session's person."""

    async def ask(self, request: PermissionRequest) -> Decision:
        """Wait for the answer, without a deadline: the human may think. Cancelled with the turn."""
