"""Moments: live `agent/*` events, never stored. They carry ids, so nothing here knows an agent.

A listener subscribes by class on the bus. Facts have their own way out: a session log's observers.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from agent_loop.chunks import Chunk
from agent_loop.events.facts import EndReason
from agent_loop.messages import Content, Source
from agent_loop.record import record

AgentStatus = Literal["idle", "running", "disposed"]


class Moment:
    """Base of all moments; TYPE is the event's name for people and for the wire."""

    __slots__ = ()
    TYPE: ClassVar[str]


@record
class SessionCreated(Moment):
    """A session is in the store. A raising listener undoes the creation."""

    TYPE: ClassVar[str] = "session/created"
    session_id: str


@record
class AgentCreated(Moment):
    """An agent is registered. A raising listener undoes the registration."""

    TYPE: ClassVar[str] = "agent/created"
    agent_id: str


@record
class AgentDisposed(Moment):
    """An agent has left the registry; its loop has ended and its log is flushed."""

    TYPE: ClassVar[str] = "agent/disposed"
    agent_id: str


@record
class StatusChanged(Moment):
    """A real transition; never a repeat, and nothing after `disposed`."""

    TYPE: ClassVar[str] = "agent/status"
    agent_id: str
    status: AgentStatus


@record
class Queued(Moment):
    """A message waits: for a turn of its own, or (steering) for the running one."""

    TYPE: ClassVar[str] = "agent/queued"
    agent_id: str
    message_id: str
    content: tuple[Content, ...]
    source: Source
    steering: bool


@record
class Discarded(Moment):
    """Waiting messages were dropped by a cancel or a disposal; no turn will carry them."""

    TYPE: ClassVar[str] = "agent/discarded"
    agent_id: str
    message_ids: tuple[str, ...]


@record
class TurnStarted(Moment):
    TYPE: ClassVar[str] = "agent/turn-start"
    agent_id: str
    turn: int


@record
class TurnEnded(Moment):
    TYPE: ClassVar[str] = "agent/turn-end"
    agent_id: str
    turn: int
    reason: EndReason


@record
class TurnFlushed(Moment):
    """The turn's facts are durable, or `error` says why not; a prompt is answered on this."""

    TYPE: ClassVar[str] = "agent/turn-flushed"
    agent_id: str
    turn: int
    error: str | None


@record
class StepStarted(Moment):
    TYPE: ClassVar[str] = "agent/step-start"
    agent_id: str
    turn: int
    step: int


@record
class StepEnded(Moment):
    TYPE: ClassVar[str] = "agent/step-end"
    agent_id: str
    turn: int
    step: int


@record
class StreamChunk(Moment):
    TYPE: ClassVar[str] = "agent/stream-chunk"
    agent_id: str
    turn: int
    step: int
    chunk: Chunk


@record
class Steered(Moment):
    TYPE: ClassVar[str] = "agent/steering"
    agent_id: str
    turn: int
    message_id: str


@record
class ToolOutput(Moment):
    """All a running tool has printed so far, bounded."""

    TYPE: ClassVar[str] = "agent/tool-output"
    agent_id: str
    turn: int
    step: int
    call_id: str
    text: str
    truncated: bool


@record
class AgentFailed(Moment):
    """Something failed: a turn (once), a flush (its last step), or work before any turn (step 0)."""

    TYPE: ClassVar[str] = "agent/error"
    agent_id: str
    turn: int
    step: int
    error: BaseException


@record
class Checkpoint(Moment):
    """Awaited by the loop (`parallel`): what is logged must now be durable.

    `durable` asks for the disk itself (before an effect, at a turn's end); without it, surviving this
    process is enough (before a model request). An exception before a tool keeps the tool from starting.
    """

    TYPE: ClassVar[str] = "session/checkpoint"
    session_id: str
    durable: bool


@record
class Pace(Moment):
    """Awaited every 64 chunks inside the turn's cancel scope: a slow reader makes the stream wait here."""

    TYPE: ClassVar[str] = "agent/pace"
    session_id: str


@record
class ModelsListed(Moment):
    """A provider said which models it has: more can be chosen than before."""

    TYPE: ClassVar[str] = "llm/models"
    provider: str


@record
class Warned(Moment):
    """News for the person that belongs to no turn: a failed flush, a server not connected."""

    TYPE: ClassVar[str] = "agent/warning"
    session_id: str
    text: str
    data: Mapping[str, Any] | None = None
