"""The places where a plugin may stand around the loop's work, and what passes through each.

Values are replaced, never mutated. Ids stand for agents and sessions, so that `events` need not
know either; a place whose values belong to a higher room (tools, llm) is named in that room.
"""

from collections.abc import Awaitable
from typing import Final, Literal

from agent_loop.errors import ProviderError
from agent_loop.events.bus import Waterfall
from agent_loop.events.facts import AssistantMessage
from agent_loop.record import record


@record
class FailedRequest:
    """A model call that failed. `shown` is true when part of its text reached the person."""

    agent_id: str
    turn: int
    step: int
    attempt: int
    error: ProviderError
    shown: bool


@record
class StepResult:
    """What the model answered, before it is logged and acted on."""

    agent_id: str
    message: AssistantMessage


@record
class Continuation:
    """Whether another step follows; `wanted` is the loop's own opinion."""

    agent_id: str
    turn: int
    step: int
    wanted: bool


Recovery = Literal["fail", "retry"]

REQUEST_ERROR: Final = Waterfall[FailedRequest, Awaitable[Recovery]]("agent/request-error")
STEP_RESULT: Final = Waterfall[StepResult, Awaitable[AssistantMessage]]("agent/step-result")
TURN_CONTINUATION: Final = Waterfall[Continuation, Awaitable[bool]]("agent/turn-continuation")
