"""How agents come up and go down: one order, and nothing half-made on either way."""

import logging
from collections.abc import Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.agent.registry import NewAgent
from agent_loop.errors import Disposed, Duplicate, HarnessError
from agent_loop.events.facts import EndReason, PluginFact, StepStart, TurnStart
from agent_loop.events.moments import (
    AgentCreated,
    AgentDisposed,
    Moment,
    SessionCreated,
    StatusChanged,
    TurnStarted,
)
from agent_loop.loop import agent_loop
from agent_loop.messages import Text
from agent_loop.session.header import SessionHeader
from agent_loop.tools.tool import ToolContext
from tests.doubles.loop_rig import Rig, ask, at, ends, hung, open_rig, reason, trouble
from tests.doubles.memory_store import MemoryStore
from tests.doubles.model import HANG, calls, text

PLUGIN = {"kind": "plugin", "plugin": "p"}


async def test_a_created_session_has_the_id_and_the_directory_it_was_given() -> None:
    """Loop specification 8.5.1 and 3: verbatim; without a directory there is none."""
    store = MemoryStore()
    async with open_rig(store=store) as rig:
        handle = await rig.agents.create(NewAgent("mine", "/w", "parent"))
        rig.handles.append(handle)
        await rig.handle("bare")

        assert handle.agent.session.header.cwd == "/w"
        assert (await store.load("mine"))[0] == handle.agent.session.header
        assert (await store.load("bare"))[0].cwd is None
        assert handle.agent.session.header.parent == "parent"


@pytest.mark.parametrize("kept", [False, True])
async def test_a_check_that_fails_leaves_nothing_behind(kept: bool) -> None:
    """Decision 13: a cwd that does not exist is refused, with a store and without."""

    def refuse() -> None:
        raise HarnessError("/w is no directory", code="CWD")

    async with open_rig(store=MemoryStore() if kept else None) as rig:
        with pytest.raises(HarnessError, match="no directory"):
            await rig.loop.create(NewAgent("s1"), refuse)

        assert (rig.agents.list(), list(rig.sessions)) == ((), [])
        rig.handles.append(await rig.loop.create(NewAgent("s1"), lambda: None))
        assert [agent.id for agent in rig.agents.list()] == ["s1"]


@pytest.mark.parametrize("kept", [False, True])
async def test_a_live_id_is_taken(kept: bool) -> None:
    """Loop specification 8.5.2: raises, and the first one goes on."""
    async with open_rig(text("a"), store=MemoryStore() if kept else None) as rig:
        agent = await rig.agent("s1")

        with pytest.raises(Duplicate):
            await rig.agent("s1")

        await ask(agent)
        assert (ends(agent), list(rig.sessions)) == (["completed"], [agent.session])


async def test_of_two_creations_at_once_one_wins() -> None:
    """Loop specification 9.14: checked again after every await."""
    async with open_rig(store=MemoryStore()) as rig:
        came: list[str] = []

        async def create() -> None:
            try:
                await rig.handle("s1")
                came.append("made")
            except Duplicate:
                came.append("refused")

        async with anyio.create_task_group() as group:
            group.start_soon(create)
            group.start_soon(create)

        assert sorted(came) == ["made", "refused"]


@pytest.mark.parametrize("kind", [SessionCreated, AgentCreated])
async def test_a_raising_created_listener_leaves_nothing_behind(kind: type[Moment]) -> None:
    """Loop specification 9.15: rolled back; the id is free again."""
    async with open_rig(text("a")) as rig:
        rig.once(kind, trouble)

        with pytest.raises(RuntimeError):
            await rig.agent("s1")
        assert (list(rig.sessions), rig.agents.list()) == ([], ())

        await ask(await rig.agent("s1"))


async def test_a_workspace_that_cannot_be_made_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loop specification 9.15: no agent without a driver."""
    left = [OSError("no such place")]

    def fails(rig: Rig, header: SessionHeader, additional: tuple[str, ...]) -> object:
        if left:
            raise left.pop()
        return made(rig, header, additional)

    made = Rig.workspace
    monkeypatch.setattr(Rig, "workspace", fails)
    async with open_rig(text("a")) as rig:
        with pytest.raises(OSError, match="no such place"):
            await rig.agent("s1")
        assert (list(rig.sessions), rig.agents.list()) == ([], ())

        await ask(await rig.agent("s1"))


async def test_facts_logged_while_a_session_is_announced_are_stored_like_any_other() -> None:
    """Our promise: a plugin may note something about a session as it begins."""
    store = MemoryStore()
    async with open_rig(text("a"), store=store) as rig:

        def notes(moment: SessionCreated) -> None:
            session = rig.sessions.get(moment.session_id)
            assert session is not None
            session.log.append(PluginFact("p", "began", None))

        rig.bus.on(SessionCreated, notes)
        handle = await rig.handle()
        await ask(handle.agent)
        await handle.dispose()

        assert [fact.seq for fact in store.facts("s1")] == list(range(handle.agent.session.log.next_seq))
        assert isinstance(store.facts("s1")[0], PluginFact)


async def test_an_agent_goes_down_in_one_order() -> None:
    """Loop specification 6.1.2: loop, last flush, registry, session; what was running ends `disposed`."""
    store = MemoryStore()
    async with open_rig(HANG, store=store) as rig:
        handle = await rig.handle()
        seen: list[tuple[bool, bool, bool]] = []

        def gone(_: AgentDisposed) -> None:
            whole = store.count("s1") == handle.agent.session.log.next_seq
            seen.append((handle.agent.done.is_set(), whole, rig.sessions.get("s1") is not None))

        rig.bus.on(AgentDisposed, gone)
        await hung(rig, handle.agent)
        await handle.dispose()

        assert seen == [(True, True, True)]
        assert (rig.agents.get("s1"), rig.sessions.get("s1")) == (None, None)
        with pytest.raises(Disposed):
            handle.agent.send([Text("hi")])


@pytest.mark.parametrize("answered", [True, False])
async def test_statuses_end_with_disposed(answered: bool) -> None:
    """Loop specification 8.3.9: running, disposed; what is queued is dropped."""
    async with open_rig(HANG) as rig:
        statuses = rig.heard(StatusChanged)
        handle = await rig.handle()
        if answered:
            await hung(rig, handle.agent)
        handle.agent.send([Text("never")])

        await handle.dispose()

        assert [moment.status for moment in statuses] == ["running"] * answered + ["disposed"]
        assert ends(handle.agent) == ["disposed"] * answered


async def test_raising_listeners_do_not_hold_up_a_disposal() -> None:
    """Loop specification 8.3.10 and 9.17."""
    async with open_rig() as rig:
        handle = await rig.handle()
        rig.bus.on(StatusChanged, trouble)
        rig.bus.on(AgentDisposed, trouble)

        await handle.dispose()

        assert (rig.agents.list(), list(rig.sessions), handle.agent.done.is_set()) == ((), [], True)


@pytest.mark.parametrize(
    "arrange",
    [
        lambda rig, agent: rig.once(TurnStarted, lambda _: agent.begin_disposal()),
        lambda rig, agent: at(agent, TurnStart, lambda _: agent.begin_disposal()),
        lambda rig, agent: at(agent, StepStart, lambda _: agent.begin_disposal()),
    ],
)
async def test_a_disposal_before_the_model_is_asked_asks_no_model(
    arrange: Callable[[Rig, object], object],
) -> None:
    """Loop specification 8.1.20 and 4.47, a gap cured."""
    async with open_rig() as rig:
        handle = await rig.handle()
        arrange(rig, handle.agent)
        handle.agent.send([Text("hi")])
        await handle.agent.when_idle()

        assert (rig.model.requests, reason(handle.agent)) == ([], EndReason("disposed"))


async def test_a_running_listener_may_dispose() -> None:
    """Loop specification 4.4.32: the token is there already, so no turn begins."""
    async with open_rig() as rig:
        agent = await rig.agent()
        rig.once(StatusChanged, lambda _: agent.begin_disposal())
        agent.send([Text("hi")])
        await agent.when_idle()

        assert (agent.status, list(agent.session.log)) == ("disposed", [])


async def test_a_loop_that_does_not_end_is_left_behind_in_words(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Contract 6: every wait has an end."""
    monkeypatch.setattr(agent_loop, "LOOP_EXIT_GRACE_S", 0.01)
    release = anyio.Event()

    async def stubborn(ctx: ToolContext, job: str) -> None:
        with anyio.CancelScope(shield=True):
            await release.wait()

    async with open_rig(calls(("c1", "{}"))) as rig:
        rig.worker.body = stubborn
        handle = await rig.handle()
        handle.agent.send([Text("hi")])
        while not rig.worker.began:
            await checkpoint()

        with caplog.at_level(logging.ERROR):
            await handle.dispose()

        assert "the loop of s1 did not end" in caplog.text
        assert rig.agents.get("s1") is None
        release.set()
        await handle.agent.done.wait()


async def test_a_driver_that_fails_disposes_its_agent_and_spares_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Contract 6: supervised; one raise is logged and never ends the server."""
    async with open_rig(text("a")) as rig:
        broken, sound = await rig.agent("s1"), await rig.agent("s2")

        async def fails() -> None:
            raise RuntimeError("a bug in the driver")

        broken.inbox.wait = fails  # type: ignore[method-assign]
        with caplog.at_level(logging.ERROR):
            await checkpoint()
            await broken.when_idle()
            await ask(sound)

        assert (broken.status, ends(sound)) == ("disposed", ["completed"])
        assert "the driver of s1 failed" in caplog.text
