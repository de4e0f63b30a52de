"""Forks, and sessions that came to nothing: what is stored of them, and what is not."""

import logging
from collections.abc import Callable

import pytest

from agent_loop.agent.registry import NewAgent
from agent_loop.errors import HarnessError, NotFound, StoreError
from agent_loop.events.facts import SessionMode, SessionModel, TurnEnd, TurnStart
from agent_loop.events.moments import SessionCreated
from agent_loop.messages import Text
from agent_loop.session.header import SessionHeader
from tests.doubles.loop_rig import Rig, ask, history, of_type, open_rig, trouble
from tests.doubles.memory_store import MemoryStore, full_disk
from tests.doubles.model import HANG, text

CHILD = NewAgent("child", "/")


async def test_a_fork_begins_with_the_parents_whole_turns_and_goes_its_own_way() -> None:
    """ACP, session fork: the child remembers; the parent is only read, and recorded."""
    store = MemoryStore()
    async with open_rig(text("first"), text("here"), text("there"), store=store) as rig:
        parent = await rig.agent("s1")
        await ask(parent, "one")
        child = await rig.loop.fork("s1", NewAgent("child", "/", options=parent.options))
        rig.handles.append(child)

        await ask(parent, "two")
        await ask(child.agent, "zwei")

        assert history(child.agent)[:3] == [("user", "one"), ("assistant", "first"), ("user", "zwei")]
        assert [said for _, said in history(parent)] == ["one", "first", "two", "here"]
        assert child.agent.session.header.parent == "s1"
        assert [fact.turn for fact in of_type(child.agent, TurnStart)] == [1, 2]
    assert [fact.seq for fact in store.facts("child")] == list(range(child.agent.session.log.next_seq))


async def test_a_fork_of_a_running_session_ends_at_its_last_whole_turn() -> None:
    """ACP, session fork: half a turn is nothing to go on from."""
    store = MemoryStore()
    async with open_rig(text("first"), HANG, store=store) as rig:
        parent = await rig.agent("s1")
        await ask(parent, "one")
        whole = parent.session.log.next_seq
        parent.send([Text("two")])
        await store.grows_to("s1", whole + 3)

        child = await rig.loop.fork("s1", NewAgent("child", "/", options=parent.options))
        rig.handles.append(child)

        assert child.agent.session.log.next_seq == whole
        assert isinstance(list(child.agent.session.log)[-1], TurnEnd)


async def test_a_fork_of_a_running_session_has_the_mode_and_the_model_its_person_chose_last() -> None:
    """Our promise: who went back to planning mid-turn forks a session that plans; the model likewise."""
    store = MemoryStore()
    async with open_rig(text("first"), HANG, store=store) as rig:
        parent = await rig.agent("s1")
        parent.session.log.append(SessionMode("full-auto"))
        await ask(parent, "one")
        whole = parent.session.log.next_seq
        parent.send([Text("two")])
        await store.grows_to("s1", whole + 3)
        parent.session.log.append(SessionMode("accept-edits"))
        parent.session.log.append(SessionMode("plan"))
        parent.session.log.append(SessionModel("scripted/deep", "high"))
        await store.grows_to("s1", whole + 6)

        child = await rig.loop.fork("s1", NewAgent("child", "/", options=parent.options))
        rig.handles.append(child)

        log = child.agent.session.log
        assert (log.next_seq, log.mode) == (whole + 2, SessionMode("plan"))
        assert log.model == SessionModel("scripted/deep", "high")
    assert [fact.seq for fact in store.facts("child")] == list(range(whole + 2))


async def test_what_is_not_stored_cannot_be_forked() -> None:
    """ACP, session fork: an unknown parent is an error, and no child is left."""
    store = MemoryStore()
    async with open_rig(store=store) as rig:
        for session_id in ("nobody", "child"):
            with pytest.raises(NotFound):
                await rig.loop.fork(session_id, CHILD)


async def test_a_look_at_the_parents_header_may_end_a_fork() -> None:
    """ACP, session set-up: the directories must fit."""

    async def refuses(header: SessionHeader) -> None:
        raise HarnessError(f"{header.id} lives elsewhere")

    store = MemoryStore()
    async with open_rig(text("first"), store=store) as rig:
        await ask(await rig.agent("s1"), "one")

        with pytest.raises(HarnessError, match="s1 lives elsewhere"):
            await rig.loop.fork("s1", CHILD, refuses)
        with pytest.raises(NotFound):
            await store.peek("child")


async def _created(rig: Rig) -> object:
    return await rig.agent("child")


async def _forked(rig: Rig) -> object:
    return await rig.loop.fork("s1", CHILD)


@pytest.mark.parametrize("made", [_created, _forked])
async def test_a_session_that_came_to_nothing_is_not_stored(made: Callable[[Rig], object]) -> None:
    """Our promise: whoever got an error finds no session of it later, and the id is free."""
    store = MemoryStore()
    async with open_rig(text("first"), store=store) as rig:
        await ask(await rig.agent("s1"), "one")
        undo = rig.bus.on(SessionCreated, trouble)

        with pytest.raises(RuntimeError, match="own trouble"):
            await made(rig)  # type: ignore[misc]

        undo()
        with pytest.raises(NotFound):
            await store.peek("child")
        await rig.agent("child")


async def test_a_fork_whose_turns_cannot_be_written_is_not_stored() -> None:
    """Our promise: half a child is no child."""
    store = MemoryStore()
    async with open_rig(text("first"), store=store) as rig:
        await ask(await rig.agent("s1"), "one")

        async def fails() -> None:
            raise full_disk()

        store.at_append = fails
        with pytest.raises(StoreError, match="disk is full"):
            await rig.loop.fork("s1", CHILD)

        with pytest.raises(NotFound):
            await store.peek("child")


async def test_a_store_that_cannot_even_forget_is_logged_and_hides_no_error(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: the first error is the one that is told."""
    store = MemoryStore()

    async def fails(_: str) -> bool:
        raise full_disk()

    monkeypatch.setattr(store, "delete", fails)
    async with open_rig(store=store) as rig:
        rig.bus.on(SessionCreated, trouble)

        with caplog.at_level(logging.ERROR), pytest.raises(RuntimeError, match="own trouble"):
            await rig.agent("s1")

    assert "came to nothing" in caplog.text


async def test_a_claim_that_cannot_be_given_back_is_logged_and_holds_nobody_up(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: an agent goes down whole, whatever its store says."""
    store = MemoryStore()

    async def fails(_: str) -> None:
        raise full_disk()

    async with open_rig(text("first"), store=store) as rig:
        handle = await rig.handle("s1")
        await ask(handle.agent, "one")
        monkeypatch.setattr(store, "release", fails)

        with caplog.at_level(logging.ERROR):
            await handle.dispose()

        assert rig.agents.list() == ()
    assert "could not be given back" in caplog.text
