"""The registry of live agents, and the seam to whatever makes them.

Holding an agent gives no power to end it: only whoever created it gets its `AgentHandle`.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

import anyio

from agent_loop.agent.agent import AgentOptions, ReactLoopAgent
from agent_loop.errors import Duplicate, HarnessError
from agent_loop.events.bus import Bus, Disposer
from agent_loop.events.moments import AgentCreated, AgentDisposed
from agent_loop.record import record

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class AgentHandle:
    """An agent and the one right to end it."""

    agent: ReactLoopAgent
    _teardown: Callable[[], Awaitable[None]]
    _finished: anyio.Event = field(default_factory=anyio.Event)
    _began: bool = False

    async def dispose(self) -> None:
        """End the agent: loop, last flush, registry entry, session, in that order.

        A second caller waits for the first one's teardown. Not interrupted by cancellation.
        """
        with anyio.CancelScope(shield=True):
            if self._began:
                await self._finished.wait()
                return
            self._began = True
            try:
                await self._teardown()
            finally:
                self._finished.set()


@record
class NewAgent:
    """What an agent is to be; `session_id` becomes the id of session, agent and stored log alike.

    Attributes:
        additional: Directories besides `cwd` that tools may touch; never stored.
    """

    session_id: str
    cwd: str | None = None
    parent: str | None = None
    additional: tuple[str, ...] = ()
    options: AgentOptions = field(default_factory=AgentOptions)


class AgentFactory(Protocol):
    """Makes agents that run."""

    async def create(self, new: NewAgent) -> AgentHandle:
        """A fresh session and its running agent; the session is stored when this returns.

        Raises:
            Duplicate: The id is live or stored already; nothing was made.
        """

    async def resume(self, session_id: str, options: AgentOptions) -> AgentHandle:
        """The stored session and an agent that continues it.

        Raises:
            NotFound: No such session is stored.
            StoreError: It cannot be read.
            Duplicate: It is live already.
        """


class Agents:
    """Live agents by id; iterating gives them in order of registration."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._by_id: dict[str, ReactLoopAgent] = {}
        self._factory: AgentFactory | None = None

    def set_factory(self, factory: AgentFactory) -> Disposer:
        """Say who makes agents.

        Raises:
            Duplicate: Somebody does already.
        """
        if self._factory is not None:
            raise Duplicate("an agent factory is set already")
        self._factory = factory

        def dispose() -> None:
            if self._factory is factory:
                self._factory = None

        return dispose

    async def create(self, new: NewAgent) -> AgentHandle:
        """See `AgentFactory.create`; HarnessError without a factory."""
        return await self._require_factory().create(new)

    async def resume(self, session_id: str, options: AgentOptions) -> AgentHandle:
        """See `AgentFactory.resume`; HarnessError without a factory."""
        return await self._require_factory().resume(session_id, options)

    def register(self, agent: ReactLoopAgent) -> Disposer:
        """Add a built agent and announce it.

        Raises:
            Duplicate: The id is taken; nothing changed.
            Exception: What an `agent/created` listener raised; the agent is taken out again first.
        """
        if agent.id in self._by_id:
            raise Duplicate(f"agent {agent.id} is live already")
        self._by_id[agent.id] = agent

        def remove() -> bool:
            if self._by_id.get(agent.id) is not agent:
                return False
            del self._by_id[agent.id]
            return True

        def dispose() -> None:
            if not remove():
                return
            try:
                self._bus.emit(AgentDisposed(agent.id))
            except Exception:
                log.exception("a listener of %s raised", AgentDisposed.TYPE)

        try:
            self._bus.emit(AgentCreated(agent.id))
        except BaseException:
            remove()
            raise
        return dispose

    def get(self, agent_id: str) -> ReactLoopAgent | None:
        """The live agent of that id, or None."""
        return self._by_id.get(agent_id)

    def list(self) -> tuple[ReactLoopAgent, ...]:
        """All live agents, oldest first."""
        return tuple(self._by_id.values())

    def _require_factory(self) -> AgentFactory:
        if self._factory is None:
            raise HarnessError("no agent factory is set", code="NO_FACTORY")
        return self._factory
