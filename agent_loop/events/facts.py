"""Facts: the durable `session/event`s a session log is made of, a closed union.

A fact is made without a place; the session log, its only writer, stamps `seq` and `time` on it
once. After that it never changes. Turning facts into JSON and back belongs to `facts_json`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from agent_loop.cards import Card
from agent_loop.chunks import Chunk, ReasoningDelta, TextDelta, Usage
from agent_loop.errors import ErrorKind
from agent_loop.messages import Content, Source
from agent_loop.record import record

Scope = Literal["step", "turn", "session"]
EndKind = Literal[
    "completed",
    "aborted",
    "error",
    "disposed",
    "max-tokens",
    "max-steps",
    "refusal",
    "interrupted",
]
CancelCause = Literal["client", "caller", "plugin", "disposed"]
Outcome = Literal["ran", "denied", "skipped", "interrupted", "unknown"]
TitledBy = Literal["prompt", "user"]
PlanPriority = Literal["high", "medium", "low"]
PlanStatus = Literal["pending", "in_progress", "completed"]
PermissionMode = Literal["ask", "accept-edits", "plan", "full-auto"]
ThoughtLevel = Literal["low", "medium", "high"]
DecidedBy = Literal["user", "rule", "mode", "cancel", "closed"]


class Fact:
    """What every fact has besides its own data.

    Attributes:
        seq: Place in the log, from 0 without gaps; set by the log.
        time: Milliseconds since the epoch; set by the log.
    """

    __slots__ = ("seq", "time")
    TYPE: ClassVar[str]
    SCOPE: ClassVar[Scope]
    IGNORABLE: ClassVar[bool] = False
    seq: int
    time: int


@record
class Trigger:
    """Why a turn began: a queued message, or context put in while idle; `source` is the first one's."""

    kind: Literal["message", "injection"]
    source: Source


@record
class EndReason:
    """Why a turn ended.

    Attributes:
        text: For `aborted`, the words of whoever stopped it.
        error_kind: For `error`, what failed.
        message: For `error`, words a person can read.
        data: For `error`, further facts for the editor: status, retryAfter, provider.
    """

    kind: EndKind
    cause: CancelCause | None = None
    text: str = ""
    error_kind: ErrorKind | None = None
    message: str = ""
    data: Mapping[str, Any] | None = None


@record
class Exit:
    """How a command ended: one of `code` and `signal`, and whether its time ran out."""

    code: int | None = None
    signal: str | None = None
    timed_out: bool = False


@record
class TurnStart(Fact):
    TYPE: ClassVar[str] = "turn/start"
    SCOPE: ClassVar[Scope] = "turn"
    turn: int
    trigger: Trigger
    message_ids: tuple[str, ...]


@record
class TurnEnd(Fact):
    TYPE: ClassVar[str] = "turn/end"
    SCOPE: ClassVar[Scope] = "turn"
    turn: int
    reason: EndReason


@record
class StepStart(Fact):
    TYPE: ClassVar[str] = "step/start"
    SCOPE: ClassVar[Scope] = "step"
    turn: int
    step: int


@record
class StepEnd(Fact):
    TYPE: ClassVar[str] = "step/end"
    SCOPE: ClassVar[Scope] = "step"
    turn: int
    step: int


@record
class UserMessage(Fact):
    TYPE: ClassVar[str] = "user/message"
    SCOPE: ClassVar[Scope] = "turn"
    turn: int
    id: str
    content: tuple[Content, ...]
    source: Source


@record
class ContextMessage(Fact):
    TYPE: ClassVar[str] = "context/message"
    SCOPE: ClassVar[Scope] = "turn"
    turn: int
    content: tuple[Content, ...]
    source: Source


@record
class SteeringMessage(Fact):
    TYPE: ClassVar[str] = "steering/message"
    SCOPE: ClassVar[Scope] = "turn"
    turn: int
    id: str
    content: tuple[Content, ...]
    source: Source


class AssistantChunk(Fact):
    """One piece of a model's answer; slotted by hand because one is made per delta."""

    __slots__ = ("attempt", "chunk", "step", "turn")
    TYPE: ClassVar[str] = "assistant/chunk"
    SCOPE: ClassVar[Scope] = "step"

    def __init__(self, turn: int, step: int, attempt: int, chunk: Chunk) -> None:
        self.turn = turn
        self.step = step
        self.attempt = attempt
        self.chunk = chunk


class AssistantRun(Fact):
    """`len(texts)` consecutive text or reasoning deltas of one block, losslessly, as one object.

    Not in the union of logged facts: it is how a log keeps them and how a row on disk packs them; whoever
    iterates a log sees the chunk facts it stands for.

    Attributes:
        delta: The class of the deltas.
        seq, time: The first delta's.
        dt_ms: Milliseconds since the delta before; 0 for the first.
        last_time: The last delta's time.
    """

    __slots__ = ("attempt", "delta", "dt_ms", "index", "last_time", "step", "texts", "turn")
    TYPE: ClassVar[str] = "assistant/run"
    SCOPE: ClassVar[Scope] = "step"

    def __init__(
        self,
        turn: int,
        step: int,
        attempt: int,
        index: int,
        delta: type[TextDelta] | type[ReasoningDelta],
        seq: int,
        time: int,
    ) -> None:
        self.turn = turn
        self.step = step
        self.attempt = attempt
        self.index = index
        self.delta = delta
        self.seq = seq
        self.time = time
        self.last_time = time
        self.texts: list[str] = []
        self.dt_ms: list[int] = []

    def facts_from(self, seq: int) -> list["AssistantChunk"]:
        """The chunk facts from place `seq` on that this run stands for."""
        facts, time = [], self.time
        for at, (text, dt_ms) in enumerate(zip(self.texts, self.dt_ms, strict=True), self.seq):
            time += dt_ms
            if at >= seq:
                fact = AssistantChunk(self.turn, self.step, self.attempt, self.delta(self.index, text))
                fact.seq, fact.time = at, time
                facts.append(fact)
        return facts

    def rest_from(self, seq: int) -> "AssistantRun | None":
        """A run of its own with the deltas from place `seq` on; None when there are none."""
        skip = max(seq - self.seq, 0)
        if skip >= len(self.texts):
            return None
        time = self.time + sum(self.dt_ms[: skip + 1])
        rest = AssistantRun(self.turn, self.step, self.attempt, self.index, self.delta, self.seq + skip, time)
        rest.texts = self.texts[skip:]
        rest.dt_ms = [0, *self.dt_ms[skip + 1 :]]
        rest.last_time = self.last_time
        return rest


@record
class AssistantMessage(Fact):
    TYPE: ClassVar[str] = "assistant/message"
    SCOPE: ClassVar[Scope] = "step"
    turn: int
    step: int
    attempt: int
    content: tuple[Content, ...]
    interrupted: bool = False


@record
class ToolCall(Fact):
    """A call the model asked for. `card` is None when nobody was or will be shown it."""

    TYPE: ClassVar[str] = "tool/call"
    SCOPE: ClassVar[Scope] = "step"
    turn: int
    step: int
    call_id: str
    name: str
    arguments: str
    card: Card | None


@record
class ToolStarted(Fact):
    TYPE: ClassVar[str] = "tool/started"
    SCOPE: ClassVar[Scope] = "step"
    turn: int
    step: int
    call_id: str


@record
class ToolResult(Fact):
    """What came of a call. `content` is what the model reads; `card` is what a person sees at the end."""

    TYPE: ClassVar[str] = "tool/result"
    SCOPE: ClassVar[Scope] = "step"
    turn: int
    step: int
    call_id: str
    content: tuple[Content, ...]
    is_error: bool
    outcome: Outcome
    error_code: str | None = None
    exit: Exit | None = None
    card: Card | None = None


@record
class PermissionAsked(Fact):
    """A question to the person; `rule` says, in words, which rule or mode wanted it asked."""

    TYPE: ClassVar[str] = "permission/asked"
    SCOPE: ClassVar[Scope] = "step"
    turn: int
    step: int
    call_id: str
    options: tuple[str, ...]
    rule: str | None = None


@record
class PermissionDecided(Fact):
    """Whether a call may run: by whom, by which of the options offered, by which rule or mode in words."""

    TYPE: ClassVar[str] = "permission/decided"
    SCOPE: ClassVar[Scope] = "step"
    turn: int
    step: int
    call_id: str
    allowed: bool
    by: DecidedBy
    option: str | None = None
    rule: str | None = None


@record
class Cost:
    """What a model call cost.

    Attributes:
        amount: Of this call.
        total: Of the session up to and with it, in the same currency.
        currency: Of both, by its ISO 4217 code.
    """

    amount: float
    total: float
    currency: str


@record
class PlanEntry:
    """One task of a plan."""

    content: str
    priority: PlanPriority
    status: PlanStatus


@record
class PlanChanged(Fact):
    """The model's plan as it is from now on, whole; no entries mean there is none."""

    TYPE: ClassVar[str] = "plan"
    SCOPE: ClassVar[Scope] = "step"
    turn: int
    step: int
    entries: tuple[PlanEntry, ...]


@record
class UsageRecorded(Fact):
    """What a model call used.

    Attributes:
        window: Tokens the model can hold; None when unknown.
        cost: None when no price is known.
    """

    TYPE: ClassVar[str] = "usage"
    SCOPE: ClassVar[Scope] = "step"
    turn: int
    step: int
    usage: Usage
    window: int | None = None
    cost: Cost | None = None


@record
class ErrorRecorded(Fact):
    TYPE: ClassVar[str] = "error"
    SCOPE: ClassVar[Scope] = "turn"
    turn: int
    message: str
    code: str
    kind: ErrorKind | None = None


@record
class RequestRetried(Fact):
    """A model call failed and is made again, in the same step; what was shown of its answer does not count.

    Attributes:
        attempt: The one that failed, counted from 1; the next has the next number.
        message: Why, in words for a person.
        delay_ms: How long the next attempt waits.
        shown: Whether part of the failed answer had reached the person.
    """

    TYPE: ClassVar[str] = "request/retried"
    SCOPE: ClassVar[Scope] = "step"
    turn: int
    step: int
    attempt: int
    kind: ErrorKind
    message: str
    delay_ms: int
    shown: bool


@record
class SessionTitle(Fact):
    """What the session is called; one the person chose is never replaced by one of ours."""

    TYPE: ClassVar[str] = "session/title"
    SCOPE: ClassVar[Scope] = "session"
    title: str
    by: TitledBy


@record
class SessionMode(Fact):
    """How freely tools may act from here on; the person chose it for this session."""

    TYPE: ClassVar[str] = "session/mode"
    SCOPE: ClassVar[Scope] = "session"
    mode: PermissionMode


@record
class SessionModel(Fact):
    """Which model answers from the next step on; the person chose it for this session.

    Attributes:
        model: `PROVIDER/NAME`.
        thought: How long it shall think; None leaves that to the settings, or the model.
    """

    TYPE: ClassVar[str] = "session/model"
    SCOPE: ClassVar[Scope] = "session"
    model: str
    thought: ThoughtLevel | None = None


@record
class PluginFact(Fact):
    """Whatever a plugin wants kept; `data` is frozen, lossless JSON. Safe for others to skip."""

    TYPE: ClassVar[str] = "plugin/fact"
    SCOPE: ClassVar[Scope] = "session"
    IGNORABLE: ClassVar[bool] = True
    plugin: str
    kind: str
    data: Any


LoggedFact = (
    TurnStart
    | TurnEnd
    | StepStart
    | StepEnd
    | UserMessage
    | ContextMessage
    | SteeringMessage
    | AssistantChunk
    | AssistantMessage
    | ToolCall
    | ToolStarted
    | ToolResult
    | PermissionAsked
    | PermissionDecided
    | PlanChanged
    | UsageRecorded
    | ErrorRecorded
    | RequestRetried
    | SessionTitle
    | SessionMode
    | SessionModel
    | PluginFact
)
"""Every fact a log shows when iterated; match on it to the last case."""

LogRow = LoggedFact | AssistantRun
"""How a fact is kept, in memory and on disk: as itself, or with others in a run."""


def facts_in(row: LogRow) -> int:
    """How many facts a row stands for."""
    return len(row.texts) if isinstance(row, AssistantRun) else 1
