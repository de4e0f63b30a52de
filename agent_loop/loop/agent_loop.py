"""AgentLoop: the factory that makes agents run.

Owns the order in which a session, its agent, its recorder and its driver come up, and the reverse.
"""

import logging
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from agent_loop.agent.agent import AgentOptions, ReactLoopAgent
from agent_loop.agent.registry import AgentHandle, Agents, NewAgent
from agent_loop.clock import Clock, wall_clock
from agent_loop.errors import Duplicate, HarnessError
from agent_loop.events.bus import Bus, Disposer
from agent_loop.events.contain import supervise
from agent_loop.events.facts import LogRow, facts_in
from agent_loop.llm.registry import LlmRegistry
from agent_loop.loop.driver import run_loop
from agent_loop.loop.services import Services
from agent_loop.persistence.recorder import Recorder
from agent_loop.persistence.store import Store
from agent_loop.prompt.system_prompt import SystemPrompt
from agent_loop.session.header import SessionHeader
from agent_loop.session.repair import closers, whole_turns
from agent_loop.session.sessions import Sessions
from agent_loop.tools.registry import ToolRegistry
from agent_loop.workspace.workspace import Workspace

log = logging.getLogger(__name__)

LOOP_EXIT_GRACE_S = 5.0
RELEASE_GRACE_S = 2.0
WorkspaceFactory = Callable[[SessionHeader, tuple[str, ...]], Workspace]


class AgentLoop:
    """Implements `agent.registry.AgentFactory`."""

    def __init__(
        self,
        *,
        bus: Bus,
        sessions: Sessions,
        agents: Agents,
        llm: LlmRegistry,
        tools: ToolRegistry,
        prompt: SystemPrompt,
        workspace: WorkspaceFactory,
        drivers: TaskGroup,
        store: Store | None = None,
        clock: Clock = wall_clock,
    ) -> None:
        """Take the rooms to work with.

        Args:
            drivers: Parent of every driver and recorder task.
            store: Where sessions are kept; None keeps them in memory only.
        """
        self._bus = bus
        self._sessions = sessions
        self._agents = agents
        self._llm = llm
        self._tools = tools
        self._prompt = prompt
        self._workspace = workspace
        self._drivers = drivers
        self._store = store
        self._clock = clock
        self._opening: set[str] = set()

    async def create(self, new: NewAgent, check: Callable[[], object] | None = None) -> AgentHandle:
        """See `AgentFactory.create`; `check` may block, and is called in a thread before anything is made.

        Raises:
            Exception: What `check` raised.
        """
        self._require_free(new.session_id)
        header = SessionHeader(new.session_id, self._clock(), new.cwd, new.parent)
        if self._store is None:
            if check is not None:
                await to_thread.run_sync(check)
            return self._start(header, [], new.options, new.additional)
        await self._store.create(header, check)
        try:
            return self._start(header, [], new.options, new.additional)
        except BaseException:
            await _undo(self._store, header.id)
            raise

    async def resume(
        self,
        session_id: str,
        options: AgentOptions,
        check: Callable[[SessionHeader], Awaitable[None]] | None = None,
        additional: tuple[str, ...] = (),
    ) -> AgentHandle:
        """See `AgentFactory.resume`; what a crash left open is closed, durably, before anything runs.

        Args:
            check: Sees the header before anything is built and may raise.
            additional: See `NewAgent`.
        """
        store = self._require_store()
        self._require_free(session_id)
        self._opening.add(session_id)
        try:
            header, rows = await store.load(session_id)
            try:
                if check is not None:
                    await check(header)
                added = closers(rows)
                await store.repair(session_id, added)
                return self._start(header, [*rows, *added], options, additional)
            except BaseException:
                await _give_back(store, session_id)
                raise
        finally:
            self._opening.discard(session_id)

    async def fork(
        self,
        parent_id: str,
        new: NewAgent,
        check: Callable[[SessionHeader], Awaitable[None]] | None = None,
    ) -> AgentHandle:
        """A session of its own that begins with the parent's whole turns; the parent is only read.

        Raises:
            NotFound, StoreError: The parent is not stored, or cannot be read.
        """
        store = self._require_store()
        header, rows = await store.peek(parent_id)
        if check is not None:
            await check(header)
        kept = whole_turns(rows)
        child = SessionHeader(new.session_id, self._clock(), new.cwd, parent_id)
        await store.create(child)
        try:
            await store.append(child.id, kept, first_seq=0, durable=True)
            return self._start(child, kept, new.options, new.additional)
        except BaseException:
            await _undo(store, child.id)
            raise

    def _require_store(self) -> Store:
        if self._store is None:
            raise HarnessError("sessions are not stored here: persistence is not configured", code="NO_STORE")
        return self._store

    def _require_free(self, session_id: str) -> None:
        live = self._agents.get(session_id) is not None or self._sessions.get(session_id) is not None
        if live or session_id in self._opening:
            raise Duplicate(f"session {session_id} is live already")

    def _start(
        self, header: SessionHeader, seed: list[LogRow], options: AgentOptions, additional: tuple[str, ...]
    ) -> AgentHandle:
        workspace = self._workspace(header, additional)
        session, remove_session = self._sessions.create(header, seed)
        agent = ReactLoopAgent(session, options, self._bus)
        try:
            unregister = self._agents.register(agent)
        except BaseException:
            remove_session()
            raise

        recorder = None
        if self._store is not None:
            recorder = Recorder(self._store, session, self._bus, stored=sum(map(facts_in, seed)))
            self._drivers.start_soon(supervise, f"recorder of {agent.id}", recorder.run, _report)
        services = Services(self._bus, self._llm, self._tools, self._prompt, workspace)

        def driver_failed(name: str, error: BaseException) -> None:
            _report(name, error)
            agent.begin_disposal()

        driver = partial(run_loop, agent, services)
        self._drivers.start_soon(supervise, f"driver of {agent.id}", driver, driver_failed)
        return AgentHandle(
            agent, partial(_teardown, agent, recorder, self._store, unregister, remove_session)
        )


async def _teardown(
    agent: ReactLoopAgent,
    recorder: Recorder | None,
    store: Store | None,
    unregister: Disposer,
    remove_session: Disposer,
) -> None:
    """The one ordered chain: loop, last flush, claim, registry, session; none is left out for another."""
    agent.begin_disposal()
    with anyio.move_on_after(LOOP_EXIT_GRACE_S):
        await agent.done.wait()
    if not agent.done.is_set():
        log.error("the loop of %s did not end within %s s", agent.id, LOOP_EXIT_GRACE_S)
    if recorder is not None:
        await recorder.close()
    if store is not None:
        await _give_back(store, agent.id)
    unregister()
    remove_session()


async def _give_back(store: Store, session_id: str) -> None:
    with anyio.move_on_after(RELEASE_GRACE_S, shield=True):
        try:
            await store.release(session_id)
        except Exception:
            log.exception("the claim on session %s could not be given back", session_id)


async def _undo(store: Store, session_id: str) -> None:
    """Forget a session that was just made and came to nothing."""
    with anyio.move_on_after(RELEASE_GRACE_S, shield=True):
        try:
            await store.delete(session_id)
        except Exception:
            log.exception("session %s came to nothing, and could not be deleted", session_id)


def _report(name: str, error: BaseException) -> None:
    log.error("the %s failed", name, exc_info=error)
