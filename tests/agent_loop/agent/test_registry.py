"""The registry of agents, the seam to their factory, and the right to end one."""

import logging

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.agent.agent import AgentOptions, ReactLoopAgent
from agent_loop.agent.registry import AgentHandle, Agents, NewAgent
from agent_loop.errors import Duplicate, HarnessError
from agent_loop.events.bus import Bus
from agent_loop.events.moments import AgentCreated, AgentDisposed
from agent_loop.session.header import SessionHeader
from agent_loop.session.sessions import Session

BUS = Bus()


def agent(agent_id: str = "a") -> ReactLoopAgent:
    return ReactLoopAgent(Session(SessionHeader(agent_id, 1)), AgentOptions(), BUS)


class Factory:
    """Makes nothing, and remembers what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[object] = []

    async def create(self, new: NewAgent) -> AgentHandle:
        self.asked.append(new)
        return AgentHandle(agent(), anyio.lowlevel.checkpoint)

    async def resume(self, session_id: str, options: AgentOptions) -> AgentHandle:
        self.asked.append((session_id, options))
        return AgentHandle(agent(), anyio.lowlevel.checkpoint)


def test_agents_are_listed_in_the_order_they_came() -> None:
    """Loop specification 1.2."""
    agents = Agents(Bus())
    first, second = agent("a"), agent("b")
    remove = agents.register(first)
    agents.register(second)

    assert (agents.list(), agents.get("b"), agents.get("c")) == ((first, second), second, None)

    remove()
    assert agents.list() == (second,)


def test_a_live_id_is_taken() -> None:
    """Loop specification 1.2: a duplicate raises before anything changes."""
    agents = Agents(Bus())
    first = agent()
    agents.register(first)

    with pytest.raises(Duplicate, match="agent a is live already"):
        agents.register(agent())

    assert agents.list() == (first,)


def test_coming_and_going_are_announced_when_they_are_true() -> None:
    """Loop specification 2: after the insert, after the removal, once each."""
    bus = Bus()
    agents, heard = Agents(bus), list[object]()
    bus.on(AgentCreated, lambda moment: heard.append((moment, agents.get("a") is not None)))
    bus.on(AgentDisposed, lambda moment: heard.append((moment, agents.get("a") is not None)))

    remove = agents.register(agent())
    remove()
    remove()

    assert heard == [(AgentCreated("a"), True), (AgentDisposed("a"), False)]


def test_a_raising_created_listener_undoes_the_registration() -> None:
    """Loop specification 2: propagates and rolls back; nobody hears of a disposal."""
    bus = Bus()
    agents, gone = Agents(bus), list[object]()
    bus.on(AgentDisposed, gone.append)
    dispose = bus.on(AgentCreated, lambda _: (_ for _ in ()).throw(RuntimeError("no")))

    with pytest.raises(RuntimeError, match="no"):
        agents.register(agent())

    dispose()
    assert (agents.list(), gone) == ((), [])
    agents.register(agent())


def test_a_raising_disposed_listener_is_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Loop specification 6.1.4: it must not keep the session from being taken out."""
    bus = Bus()
    agents = Agents(bus)
    remove = agents.register(agent())
    bus.on(AgentDisposed, lambda _: (_ for _ in ()).throw(RuntimeError("no")))

    with caplog.at_level(logging.ERROR):
        remove()

    assert agents.list() == ()
    assert "a listener of agent/disposed raised" in caplog.text


def test_an_old_disposer_leaves_a_later_agent_of_the_same_id_alone() -> None:
    """Loop specification 9.19."""
    agents = Agents(Bus())
    remove = agents.register(agent())
    remove()
    later = agent()
    agents.register(later)

    remove()

    assert agents.get("a") is later


async def test_creating_and_resuming_are_the_factorys_work() -> None:
    """Loop specification 1.2: the factory seam."""
    agents, factory = Agents(Bus()), Factory()
    dispose = agents.set_factory(factory)

    await agents.create(NewAgent("a"))
    await agents.resume("b", AgentOptions("m"))
    assert factory.asked == [NewAgent("a"), ("b", AgentOptions("m"))]

    dispose()
    with pytest.raises(HarnessError) as caught:
        await agents.create(NewAgent("a"))
    assert caught.value.code == "NO_FACTORY"


async def test_there_is_one_factory_at_a_time() -> None:
    """Loop specification 1.2: a second raises; the slot is free again after its disposer."""
    agents, first, second = Agents(Bus()), Factory(), Factory()
    dispose = agents.set_factory(first)

    with pytest.raises(Duplicate):
        agents.set_factory(second)

    dispose()
    agents.set_factory(second)
    dispose()
    await agents.create(NewAgent("a"))
    assert (len(first.asked), len(second.asked)) == (0, 1)


async def test_disposing_twice_is_one_teardown_that_both_wait_for() -> None:
    """Loop specification 6.1.3: memoized; the second caller does not return early."""
    release, order = anyio.Event(), list[str]()

    async def teardown() -> None:
        order.append("began")
        await release.wait()
        order.append("ended")

    handle = AgentHandle(agent(), teardown)

    async def disposes() -> None:
        await handle.dispose()
        order.append("returned")

    with anyio.fail_after(1):
        async with anyio.create_task_group() as group:
            group.start_soon(disposes)
            group.start_soon(disposes)
            await checkpoint()
            await checkpoint()
            release.set()
        await handle.dispose()

    assert order == ["began", "ended", "returned", "returned"]


async def test_a_teardown_is_not_interrupted() -> None:
    """Contract 6: clean up under a shield."""
    order: list[str] = []

    async def teardown() -> None:
        await checkpoint()
        order.append("ended")

    with anyio.CancelScope() as scope:
        scope.cancel()
        await AgentHandle(agent(), teardown).dispose()

    assert order == ["ended"]


async def test_a_failed_teardown_lets_the_second_caller_go() -> None:
    """Our promise: nobody waits for ever for what will not come."""

    async def teardown() -> None:
        raise RuntimeError("stuck")

    handle = AgentHandle(agent(), teardown)

    with pytest.raises(RuntimeError, match="stuck"):
        await handle.dispose()
    with anyio.fail_after(1):
        await handle.dispose()
