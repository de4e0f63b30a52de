"""The flush behind each turn: awaited, bounded, out of a cancel's reach, and never fatal."""

import asyncio

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.events.facts import ErrorRecorded, TurnEnd
from agent_loop.events.moments import AgentFailed, Checkpoint, StatusChanged, TurnFlushed, Warned
from agent_loop.loop import driver
from agent_loop.messages import Text
from tests.doubles.loop_rig import PATIENCE_S, Rig, ask, ends, hung, of_type, open_rig, settle, trouble
from tests.doubles.memory_store import MemoryStore, full_disk
from tests.doubles.model import HANG, calls, text

UNSAVED = "This turn could not be saved to disk (the disk is full). The session goes on in memory."


def at_turn_end(rig: Rig, session_id: str, act: object) -> None:
    """Do something, awaited or not, at each flush behind a turn."""

    async def flush(moment: Checkpoint) -> None:
        session = rig.sessions.get(session_id)
        if moment.durable and session is not None and session.log.open_turn is None:
            assert callable(act)
            awaitable = act()
            if awaitable is not None:
                await awaitable

    rig.bus.on(Checkpoint, flush)


async def test_a_turn_is_flushed_once_and_idle_is_told_after_it() -> None:
    """Loop specification 8.2.20."""
    async with open_rig(text("a")) as rig:
        order: list[str] = []

        async def slow() -> None:
            order.append("flush begins")
            await checkpoint()
            order.append("flush ends")

        at_turn_end(rig, "s1", slow)
        rig.bus.on(TurnFlushed, lambda moment: order.append(f"flushed {moment.turn} {moment.error}"))
        rig.bus.on(StatusChanged, lambda moment: order.append(moment.status))
        agent = await rig.agent()
        await ask(agent)

        assert order == ["running", "flush begins", "flush ends", "flushed 1 None", "idle"]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (full_disk(), "the disk is full"),
        (asyncio.CancelledError(), "it waited for something that was cancelled"),
    ],
)
async def test_a_failed_flush_is_told_and_the_agent_goes_on(error: BaseException, words: str) -> None:
    """Loop specification 4.7.54 and 8.3.8: a warning, one moment, no fact; the prompt gets its answer."""
    left = [error]

    def fails() -> None:
        if left:
            raise left.pop()

    async with open_rig(text("a"), text("b")) as rig:
        at_turn_end(rig, "s1", fails)
        failures, warnings, flushes = rig.heard(AgentFailed), rig.heard(Warned), rig.heard(TurnFlushed)
        agent = await rig.agent()
        await ask(agent)
        await ask(agent)

        assert [(failure.turn, failure.step) for failure in failures] == [(1, 1)]
        assert [(warning.session_id, words in warning.text) for warning in warnings] == [("s1", True)]
        assert flushes == [TurnFlushed("s1", 1, words), TurnFlushed("s1", 2, None)]
        assert (ends(agent), of_type(agent, ErrorRecorded)) == (["completed", "completed"], [])


async def test_a_flush_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contract 6: every wait has an end; the prompt is answered all the same."""
    monkeypatch.setattr(driver, "FLUSH_GRACE_S", 0.01)
    async with open_rig(text("a"), text("b")) as rig:
        at_turn_end(rig, "s1", anyio.sleep_forever)
        failures, flushes = rig.heard(AgentFailed), rig.heard(TurnFlushed)
        agent = await rig.agent()
        await ask(agent)
        await ask(agent)

        assert ends(agent) == ["completed", "completed"]
        assert [flush.error for flush in flushes] == ["the disk did not answer within 0 s"] * 2
        assert failures == []


async def test_a_cancel_does_not_reach_the_flush() -> None:
    """Contract 6: it runs outside the token."""
    async with open_rig(text("a")) as rig:
        flushed: list[str] = []

        async def slow() -> None:
            agent.cancel()
            await checkpoint()
            flushed.append("to the end")

        at_turn_end(rig, "s1", slow)
        agent = await rig.agent()
        await ask(agent)

        assert (flushed, ends(agent)) == (["to the end"], ["completed"])


async def test_a_turn_that_was_disposed_of_is_flushed_too() -> None:
    """Loop specification 4.5.46 and 6.1.2: the store has its `turn/end`."""
    store = MemoryStore()
    async with open_rig(HANG, store=store) as rig:
        handle = await rig.handle()
        await hung(rig, handle.agent)

        await handle.dispose()

        assert [fact.seq for fact in store.facts("s1")] == list(range(handle.agent.session.log.next_seq))
        assert [fact.reason.kind for fact in store.facts("s1") if isinstance(fact, TurnEnd)] == ["disposed"]


async def test_a_driver_that_is_cancelled_from_outside_flushes_all_the_same() -> None:
    """Contract 6: the flush runs in a shielded scope."""
    store = MemoryStore()
    async with open_rig(HANG, store=store) as rig:
        agent = await rig.agent()
        await hung(rig, agent)

        rig.group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.fail_after(PATIENCE_S):
            await agent.done.wait()

        assert (ends(agent), store.count("s1")) == (["disposed"], agent.session.log.next_seq)


async def test_listeners_around_a_flush_that_raise_end_no_driver() -> None:
    """Our promise: one raise never ends the driver."""
    async with open_rig(text("a"), text("b")) as rig:
        at_turn_end(rig, "s1", trouble)
        for kind in (AgentFailed, Warned, TurnFlushed):
            rig.bus.on(kind, trouble)
        agent = await rig.agent()
        await ask(agent)
        await ask(agent)

        assert (ends(agent), agent.status) == (["completed", "completed"], "idle")


async def test_a_failing_disk_is_told_behind_each_turn_and_nothing_is_forgotten() -> None:
    """Contract 8: the session goes on in memory; a later flush brings everything."""
    store = MemoryStore()
    async with open_rig(text("a"), text("b"), store=store) as rig:
        warnings = rig.heard(Warned)
        agent = await rig.agent()

        async def breaks() -> None:
            if agent.session.log.open_turn is None:
                store.failing = full_disk()

        store.at_append = breaks
        await ask(agent, "one")
        assert ([warning.text for warning in warnings], ends(agent)) == ([UNSAVED], ["completed"])

        store.at_append, store.failing = checkpoint, None
        await ask(agent, "two")
        assert store.count("s1") == agent.session.log.next_seq


async def test_a_session_goes_on_in_memory_while_the_disk_fails() -> None:
    """Contract 8, and what the warning says: further prompts are answered, and nothing is forgotten."""
    store = MemoryStore()
    async with open_rig(text("a"), text("b"), text("c"), store=store) as rig:
        agent = await rig.agent()
        store.failing = full_disk()
        await ask(agent, "one")
        await ask(agent, "two")
        assert (ends(agent), store.count("s1")) == (["completed", "completed"], 0)

        store.failing = None
        await ask(agent, "three")
        assert store.count("s1") == agent.session.log.next_seq


async def test_an_effect_is_not_begun_on_a_failing_disk() -> None:
    """Contract 8: nothing is both unlogged and done."""
    store = MemoryStore()
    async with open_rig(calls(("c1", '{"effect": "write"}')), text("ok"), store=store) as rig:
        agent = await rig.agent()

        async def breaks() -> None:
            full = store.writes[-1].durable and agent.session.log.open_turn is not None
            store.failing = full_disk() if full else None

        store.at_append = breaks
        await ask(agent)

        assert (rig.worker.began, ends(agent)) == ([], ["completed"])
        assert store.count("s1") == agent.session.log.next_seq


async def test_a_session_that_is_gone_before_its_flush_is_no_trouble() -> None:
    """Our promise: disposal during a flush waits for it."""
    flushing, release = anyio.Event(), anyio.Event()

    async def slow() -> None:
        flushing.set()
        await release.wait()

    async with open_rig(text("a")) as rig:
        at_turn_end(rig, "s1", slow)
        handle = await rig.handle()
        handle.agent.send([Text("hi")])
        await flushing.wait()
        async with anyio.create_task_group() as group:
            group.start_soon(handle.dispose)
            await checkpoint()
            await checkpoint()
            assert rig.agents.get("s1") is handle.agent
            release.set()

        assert rig.agents.get("s1") is None
        await settle(handle.agent)
