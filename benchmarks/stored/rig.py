"""The loop in this process, with a model that never keeps it waiting and a store of choice."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agent_loop.agent.agent import AgentOptions, ReactLoopAgent
from agent_loop.agent.registry import AgentHandle, Agents, NewAgent
from agent_loop.chunks import BlockEnd, BlockStart, Chunk, Finish, TextDelta
from agent_loop.events.bus import Bus
from agent_loop.events.facts import LogRow
from agent_loop.events.moments import TurnEnded
from agent_loop.llm.provider import ModelRequest
from agent_loop.llm.registry import LlmRegistry
from agent_loop.loop.agent_loop import AgentLoop
from agent_loop.messages import Text
from agent_loop.prompt.system_prompt import SystemPrompt
from agent_loop.session.header import SessionHeader
from agent_loop.session.sessions import Sessions
from agent_loop.tools.registry import ToolRegistry
from agent_loop.workspace.children import Children
from agent_loop.workspace.fetch import WebFetcher
from agent_loop.workspace.local_commands import LocalCommands
from agent_loop.workspace.local_files import LocalFiles
from agent_loop.workspace.roots import Roots
from agent_loop.workspace.workspace import Workspace

WARM_DELTAS = 64


class InMemory:
    """The least a store can be, of what a running session asks of one."""

    def __init__(self) -> None:
        self._rows: dict[str, list[LogRow]] = {}

    async def create(self, header: SessionHeader, check: Callable[[], object] | None = None) -> None:
        self._rows[header.id] = []

    async def append(self, session_id: str, rows: Sequence[LogRow], *, first_seq: int, durable: bool) -> None:
        self._rows[session_id] += rows

    async def release(self, session_id: str) -> None:
        del self._rows[session_id]


class Ready:
    """A model whose answer is made before it is asked."""

    name = "ready"

    def __init__(self) -> None:
        self.answer: list[Chunk] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        for chunk in self.answer:
            yield chunk

    async def load(self) -> None:
        """Nothing to wait for."""

    async def aclose(self) -> None:
        """Nothing to give back."""


class Loop:
    """One loop and its store; made by `open_loop`.

    Attributes:
        ended_at: When the newest turn was over in the log, by `time.perf_counter`; it is stored after that.
    """

    def __init__(self, store: Any, drivers: TaskGroup) -> None:
        bus = Bus()
        bus.on(TurnEnded, self._ended)
        self.ended_at = 0.0
        self._model = Ready()
        llm = LlmRegistry(bus)
        llm.register(self._model)
        self._agents = Agents(bus)
        self._agents.set_factory(
            AgentLoop(
                bus=bus,
                sessions=Sessions(bus),
                agents=self._agents,
                llm=llm,
                tools=ToolRegistry(bus),
                prompt=SystemPrompt(bus),
                workspace=_workspace,
                drivers=drivers,
                store=store,
            )
        )

    async def session(self, session_id: str, cwd: str) -> AgentHandle:
        """A session with a short turn behind it, so that what happens once per session has happened."""
        options = AgentOptions(model=f"{self._model.name}/any")
        handle = await self._agents.create(NewAgent(session_id, cwd, options=options))
        self.be_ready(WARM_DELTAS)
        await turn(handle.agent)
        return handle

    def be_ready(self, deltas: int) -> None:
        """Have the next answers at hand: one block of that many deltas."""
        said: list[Chunk] = [TextDelta(0, delta_text(at)) for at in range(deltas)]
        self._model.answer = [BlockStart(0, "text"), *said, BlockEnd(0), Finish("stop")]

    def _ended(self, _: TurnEnded) -> None:
        self.ended_at = time.perf_counter()


@asynccontextmanager
async def open_loop(store: Any) -> AsyncIterator[Loop]:
    """A loop for a block; its sessions must be disposed before the end."""
    async with anyio.create_task_group() as drivers:
        yield Loop(store, drivers)
        drivers.cancel_scope.cancel()


async def turn(agent: ReactLoopAgent) -> None:
    """One prompt, until its turn is stored."""
    agent.send([Text("go on")])
    await agent.when_idle()


def delta_text(at: int) -> str:
    """As the agents' own deltas read."""
    return f"{at:07d} "


def _workspace(header: SessionHeader, additional: tuple[str, ...]) -> Workspace:
    commands = LocalCommands(Children(0.1), "/nowhere")
    return Workspace(Roots(header.cwd or "/", additional), LocalFiles(), commands, commands, WebFetcher())
