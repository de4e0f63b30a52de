"""The provider seam: a request goes in, chunks come out.

A provider is an async generator of chunks. It must
1. never open a cancel scope or task group around a `yield`, and close its own stream in `finally`
   under a shield with a deadline: the loop closes the generator, wherever it stopped;
2. raise `ProviderError` (or end with a `Finish` of kind `error`) for every failure of its own;
   anything else it raises is a bug and ends the turn as `unknown`;
3. import nothing heavy on the event loop: `load()` does that in a worker thread.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import field
from typing import Any, Final, Protocol

from agent_loop.chunks import Chunk
from agent_loop.events.bus import Waterfall
from agent_loop.events.facts import ThoughtLevel
from agent_loop.llm.models import ModelInfo
from agent_loop.messages import Message
from agent_loop.record import record


@record
class ToolSchema:
    """A tool as the model is told of it; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@record
class ModelRequest:
    """One model call.

    Attributes:
        model: The provider's own name for the model, without the `PROVIDER/` part.
        system: The system prompt; empty for none.
        session_id: Whose call this is, for logs, traces and scripted models.
        info: What is known of the model.
        thought: How long it shall think; None leaves that to the settings, or the model.
    """

    provider: str
    model: str
    messages: Sequence[Message]
    system: str = ""
    tools: Sequence[ToolSchema] = field(default=())
    session_id: str = ""
    info: ModelInfo = field(default_factory=ModelInfo)
    thought: ThoughtLevel | None = None


class Provider(Protocol):
    """Where models live."""

    @property
    def name(self) -> str:
        """The name before the slash in `PROVIDER/MODEL`."""

    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """The answer, piece by piece.

        Raises:
            ProviderError: From the iterator, at any point of it.
        """

    async def load(self) -> None:
        """Do what the first call would have to wait for: imports, clients. Idempotent."""

    async def models(self) -> Sequence[str]:
        """The names it answers to, as far as it tells; none when it cannot be asked.

        Raises:
            ProviderError: It was asked, and failed to say.
        """

    async def aclose(self) -> None:
        """Give back connections. Idempotent; called once at shutdown."""


STREAM: Final = Waterfall[ModelRequest, AsyncIterator[Chunk]]("llm/stream")


@record
class AgentRequest:
    """A request about to be sent, and whose it is."""

    agent_id: str
    turn: int
    step: int
    request: ModelRequest


REQUEST: Final = Waterfall[AgentRequest, Awaitable[ModelRequest]]("agent/request")
