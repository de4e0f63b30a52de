"""Every place the loop passes in a turn, counted, so that something can be made to happen at exactly one.

A point is one fact logged, one moment told, or one place the loop awaits something foreign: the model,
a tool, the store, a checkpoint, the pace, a prompt section, and both sides of every middleware.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio.lowlevel

from agent_loop.agent.agent import ReactLoopAgent
from agent_loop.events import moments
from agent_loop.events.bus import Next
from agent_loop.events.facts import LoggedFact
from agent_loop.events.moments import Checkpoint, Moment, Pace
from agent_loop.events.waterfalls import REQUEST_ERROR, STEP_RESULT, TURN_CONTINUATION
from agent_loop.llm.provider import REQUEST
from agent_loop.prompt.system_prompt import ASSEMBLE, PromptContext
from agent_loop.tools.tool import EXECUTE, ToolContext
from tests.doubles.loop_rig import Rig
from tests.doubles.memory_store import MemoryStore

AWAITED = (Checkpoint, Pace)
UNTOLD = (*AWAITED, moments.SessionCreated, moments.AgentCreated, moments.AgentDisposed)
"""Moments of the life around turns, and those that are awaited instead of told."""


class Points:
    """Counts the points of one run, and acts at one of them.

    Attributes:
        names: What was passed, in order.
        act: Called at point number `at`; what it raises is raised there.
    """

    def __init__(self, rig: Rig, agent: ReactLoopAgent, at: int | None = None) -> None:
        self.names: list[str] = []
        self.at = at
        self.act: Callable[[], object] = lambda: None
        self._log = agent.session.log
        self._log.observe(self._logged)
        for kind in _told():
            rig.bus.on(kind, self._heard)
        for awaited in AWAITED:
            rig.bus.on(awaited, self._awaited)
        places: tuple[Any, ...] = (
            REQUEST,
            REQUEST_ERROR,
            STEP_RESULT,
            TURN_CONTINUATION,
            EXECUTE,
            ASSEMBLE,
        )
        for place in places:
            rig.bus.around(place, self._around(place.name))
        rig.prompt.section("points", 1, self._section)
        rig.model.at_point = self._in_model
        rig.worker.on_prepare = self._in_prepare
        if isinstance(rig.store, MemoryStore):
            rig.store.at_append = self._in_store
        rig.worker.body = self._in_body(rig.worker.body)

    def hit(self, name: str) -> None:
        """The loop is here."""
        self.names.append(name)
        if len(self.names) - 1 == self.at:
            self.act()

    async def awaited(self, name: str) -> None:
        """The loop is here, and awaits."""
        self.hit(name)
        await anyio.lowlevel.checkpoint()

    def _logged(self, fact: LoggedFact) -> None:
        self.hit(f"fact {fact.TYPE}")

    def _heard(self, moment: Moment) -> None:
        self.hit(f"moment {moment.TYPE}")

    async def _awaited(self, moment: Moment) -> None:
        await self.awaited(f"await {moment.TYPE}")

    def _around(self, name: str) -> Callable[[Any, Next[Any, Awaitable[Any]]], Awaitable[Any]]:
        async def middleware(value: Any, next: Next[Any, Awaitable[Any]]) -> Any:
            await self.awaited(f"before {name}")
            answer = await next(value)
            await self.awaited(f"after {name}")
            return answer

        return middleware

    async def _section(self, context: PromptContext) -> str:
        await self.awaited("await section")
        return "section"

    async def _in_model(self, where: str) -> None:
        await self.awaited(f"model {where}")

    async def _in_store(self) -> None:
        await self.awaited("store append")

    async def _in_prepare(self, ctx: ToolContext, job: str) -> None:
        await self.awaited("tool prepare")

    def _in_body(self, body: Callable[[ToolContext, str], Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def run(ctx: ToolContext, job: str) -> Any:
            await self.awaited("tool body")
            outcome = await body(ctx, job)
            await self.awaited("tool done")
            return outcome

        return run


def _told() -> list[type[Moment]]:
    return [kind for kind in Moment.__subclasses__() if kind not in UNTOLD]
