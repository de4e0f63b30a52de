"""The tool seam: prepare looks and makes the card, run acts, and what was approved is what runs.

A failure the model can mend is an outcome with `is_error`, not an exception; an exception is a bug
of the tool and becomes an error result all the same.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from agent_loop.cards import Card
from agent_loop.events.bus import Waterfall
from agent_loop.events.facts import Exit, Outcome, PlanChanged, PluginFact
from agent_loop.messages import Content
from agent_loop.record import record
from agent_loop.workspace.workspace import Workspace

EffectKind = Literal["none", "read", "write", "delete", "move", "execute", "fetch", "other"]
A = TypeVar("A", bound=BaseModel)


@record
class Effect:
    """What a call would do to the world, for whoever decides whether it may.

    Attributes:
        paths: Real, absolute paths it touches.
        shell: The exact command line, for kind `execute`.
        cwd: Real directory a command runs in.
        domain: Host a fetch goes to.
    """

    kind: EffectKind
    paths: tuple[str, ...] = ()
    shell: str | None = None
    cwd: str | None = None
    domain: str | None = None


@record
class Prepared:
    """A call looked at but not done.

    Attributes:
        state: The tool's own: what `run` needs, preimage hashes included. Nobody else reads it.
    """

    card: Card
    effect: Effect
    state: Any = None


class Token(Protocol):
    """The turn's cancel token, as far as a tool may see it."""

    @property
    def fired(self) -> bool:
        """True once the turn is cancelled; ask right before every effect."""


@record
class ToolContext:
    """What a tool may use, for one call.

    Attributes:
        session_state: A dict of this session's that lives as long as it does in memory; tools key it by name.
        append: Log a plugin's fact, or the plan.
        output: Show all output so far, bounded (live only), and whether some was left out.
        terminal: Show the editor's terminal of that id, in which the call's command runs (live only).
        hidden: Whether the person keeps the file at a real path from this tool; for whoever looks into files
            that its effect does not name. Blocks.
    """

    session_id: str
    turn: int
    step: int
    call_id: str
    workspace: Workspace
    token: Token
    session_state: dict[str, Any] = field(repr=False)
    append: Callable[[PluginFact | PlanChanged], object] = field(repr=False)
    output: Callable[[str, bool], None] = field(repr=False)
    terminal: Callable[[str], None] = field(repr=False)
    hidden: Callable[[str], bool] | None = field(default=None, repr=False)


@record
class ToolOutcome:
    """What came of a call.

    Attributes:
        content: What the model reads; at most 64,000 bytes.
        card: What the person sees at the end; None keeps the prepared card.
    """

    content: tuple[Content, ...]
    is_error: bool = False
    card: Card | None = None
    exit: Exit | None = None
    outcome: Outcome = "ran"
    error_code: str | None = None


class Tool(Protocol, Generic[A]):
    """One tool. `arguments` is the model class whose field descriptions the language model reads."""

    name: str
    description: str
    arguments: type[A]

    def parallel_safe(self, args: A) -> bool:
        """Whether this call may run beside its neighbours; false for anything with an effect."""

    async def prepare(self, args: A, ctx: ToolContext) -> Prepared:
        """Look, never write; make the card.

        Raises:
            ToolRefused: The call makes no sense here; the text tells the model how to mend it.
        """

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        """Do it. Refuses in words when a preimage changed since `prepare`."""


class ToolRefused(Exception):
    """A call that cannot be prepared.

    Attributes:
        code: Stable word for the log: `INVALID_ARGS`, `OUTSIDE_ROOTS`, `NOT_FOUND` …
        card: What the person should see of it; None for the generic card.
    """

    def __init__(self, message: str, *, code: str = "REFUSED", card: Card | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.card = card


@record
class PreparedCall:
    """A call on its way through the `tools/execute` waterfall."""

    name: str
    arguments: Mapping[str, Any]
    prepared: Prepared
    ctx: ToolContext


EXECUTE: Final = Waterfall[PreparedCall, Awaitable[ToolOutcome]]("tools/execute")
