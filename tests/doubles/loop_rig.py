"""The loop without a harness: real bus, sessions, agents, registries and prompt around a scripted model.

Owns wiring and the promises every test wants kept: at the end of a rig each log balances, each history
is one that providers take, and no task is left.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import anyio
from anyio.abc import TaskGroup

from agent_loop.agent.agent import AgentOptions, ReactLoopAgent
from agent_loop.agent.registry import AgentHandle, Agents, NewAgent
from agent_loop.events.bus import Bus
from agent_loop.events.facts import EndReason, LoggedFact, TurnEnd
from agent_loop.events.moments import Moment
from agent_loop.llm.registry import LlmRegistry
from agent_loop.loop.agent_loop import AgentLoop
from agent_loop.messages import Message, Text, ToolCallBlock, ToolResultBlock, text_of
from agent_loop.persistence.store import Store
from agent_loop.prompt.system_prompt import SystemPrompt
from agent_loop.session.header import SessionHeader
from agent_loop.session.invariants import Invariants
from agent_loop.session.sessions import Sessions
from agent_loop.tools.registry import ToolRegistry
from agent_loop.workspace.children import Children
from agent_loop.workspace.fetch import WebFetcher
from agent_loop.workspace.local_commands import LocalCommands
from agent_loop.workspace.local_files import LocalFiles
from agent_loop.workspace.roots import Roots
from agent_loop.workspace.workspace import Workspace
from tests.doubles.clock import SteppingClock
from tests.doubles.model import Entry, ScriptedModel
from tests.doubles.worker import Worker

PATIENCE_S = 5.0
"""How long a test waits for what must happen; far more than it takes."""

F = TypeVar("F", bound=LoggedFact)
M = TypeVar("M", bound=Moment)


class Rig:
    """One wired loop; made by `open_rig`.

    Attributes:
        worker: The tool `work`, which does what a test says.
    """

    def __init__(self, model: ScriptedModel, store: Store | None, group: TaskGroup) -> None:
        self.model = model
        self.store = store
        self.group = group
        self.clock = SteppingClock()
        self.bus = Bus()
        self.sessions = Sessions(self.bus, clock=self.clock)
        self.agents = Agents(self.bus)
        self.llm = LlmRegistry(self.bus)
        self.tools = ToolRegistry(self.bus)
        self.prompt = SystemPrompt(self.bus)
        self.worker = Worker()
        self.handles: list[AgentHandle] = []
        self.llm.register(model)
        self.tools.register(self.worker)
        self.loop = AgentLoop(
            bus=self.bus,
            sessions=self.sessions,
            agents=self.agents,
            llm=self.llm,
            tools=self.tools,
            prompt=self.prompt,
            workspace=self.workspace,
            drivers=group,
            store=store,
            clock=self.clock,
        )
        self.agents.set_factory(self.loop)

    def workspace(self, header: SessionHeader, additional: tuple[str, ...]) -> Workspace:
        commands = LocalCommands(Children(0.1), "/nowhere")
        roots = Roots(header.cwd or "/", additional)
        return Workspace(roots, LocalFiles(), commands, commands, WebFetcher())

    async def handle(self, session_id: str = "s1", *, cwd: str | None = None, **options: Any) -> AgentHandle:
        """A running agent and the right to end it; `options` are those of AgentOptions."""
        wanted = AgentOptions(**{"model": "script/m", **options})
        handle = await self.agents.create(NewAgent(session_id, cwd, options=wanted))
        self.handles.append(handle)
        return handle

    async def agent(self, session_id: str = "s1", **options: Any) -> ReactLoopAgent:
        return (await self.handle(session_id, **options)).agent

    async def resume(self, session_id: str, **options: Any) -> AgentHandle:
        wanted = AgentOptions(**{"model": "script/m", **options})
        handle = await self.agents.resume(session_id, wanted)
        self.handles.append(handle)
        return handle

    def heard(self, event: type[M]) -> list[M]:
        """Every moment of that class from now on, in a list that grows."""
        heard: list[M] = []
        self.bus.on(event, heard.append)
        return heard

    def once(self, event: type[M], act: Callable[[M], object]) -> None:
        """Do `act` at the next moment of that class, and only then."""
        state = {"left": 1}

        def listener(moment: M) -> None:
            if state["left"]:
                state["left"] = 0
                act(moment)

        self.bus.on(event, listener)


def at(agent: ReactLoopAgent, kind: type[F], act: Callable[[F], object], nth: int = 1) -> None:
    """Do `act` inside the append of the nth fact of that class, and only then."""
    seen = 0

    def observer(fact: LoggedFact) -> None:
        nonlocal seen
        if isinstance(fact, kind):
            seen += 1
            if seen == nth:
                act(fact)

    agent.session.log.observe(observer)


def trouble(_: object = None) -> None:
    """A listener or observer that raises."""
    raise RuntimeError("a listener's own trouble")


@asynccontextmanager
async def open_rig(*entries: Entry, store: Store | None = None) -> AsyncIterator[Rig]:
    """Run a rig for a block, with a model that answers these entries; checks the promises at the end."""
    before = asyncio.all_tasks()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            rig = Rig(ScriptedModel(*entries), store, group)
            yield rig
            for handle in rig.handles:
                await handle.dispose()
            group.cancel_scope.cancel()
    assert asyncio.all_tasks() <= before, "a task outlived the rig"
    for handle in rig.handles:
        check_log(handle.agent)


def check_log(agent: ReactLoopAgent) -> None:
    """The log balances, and the history derived from it is one that every provider takes."""
    Invariants().check_all(agent.session.log)
    check_history(agent.session.messages())


def check_history(messages: Sequence[Message]) -> None:
    """Every tool call is followed directly by its results, in order, and no result stands alone."""
    owed: list[str] = []
    for message in messages:
        results = [block.call_id for block in message.content if isinstance(block, ToolResultBlock)]
        if results:
            assert owed[: len(results)] == results, f"owed {owed}, got {results}"
            owed = owed[len(results) :]
            continue
        assert not owed, f"{message.role} message stands before the results of {owed}"
        owed = [block.id for block in message.content if isinstance(block, ToolCallBlock)]
    assert not owed, f"no results for {owed}"


async def settle(agent: ReactLoopAgent) -> None:
    """Wait until the agent has nothing to do."""
    with anyio.fail_after(PATIENCE_S):
        await agent.when_idle()


async def hung(rig: Rig, agent: ReactLoopAgent, words: str = "hi") -> None:
    """Send a prompt and wait until the model hangs in its answer."""
    agent.send([Text(words)])
    with anyio.fail_after(PATIENCE_S):
        await rig.model.hanging.wait()


async def ask(agent: ReactLoopAgent, words: str = "hi") -> None:
    """Send a prompt and wait until everything is done."""
    agent.send([Text(words)])
    await settle(agent)


def types(facts: Iterable[LoggedFact]) -> list[str]:
    """The facts' types, runs of chunks as one."""
    found: list[str] = []
    for fact in facts:
        if not (found and found[-1] == fact.TYPE == "assistant/chunk"):
            found.append(fact.TYPE)
    return found


def reason(agent: ReactLoopAgent) -> EndReason:
    """Why the newest turn ended."""
    return of_type(agent, TurnEnd)[-1].reason


def of_type(agent: ReactLoopAgent, kind: type[F]) -> list[F]:
    """The log's facts of one class, in order."""
    return [fact for fact in agent.session.log if isinstance(fact, kind)]


def ends(agent: ReactLoopAgent) -> list[str]:
    """How each turn ended, in order."""
    return [fact.reason.kind for fact in of_type(agent, TurnEnd)]


def history(agent: ReactLoopAgent) -> list[tuple[str, str]]:
    """Role and text of each message the model would see; results as the text in them."""
    return [(message.role, _words(message)) for message in agent.session.messages()]


def _words(message: Message) -> str:
    words = text_of(message.content)
    for block in message.content:
        if isinstance(block, ToolCallBlock):
            words += f"[{block.id}]"
        elif isinstance(block, ToolResultBlock):
            words += f"{block.call_id}: {text_of(block.content)}"
    return words
