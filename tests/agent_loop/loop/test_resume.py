"""Sessions that go on: what a stored log gives back, and what cannot be resumed."""

import anyio
import pytest

from agent_loop.errors import Duplicate, HarnessError, NotFound
from agent_loop.events.facts import TurnStart
from agent_loop.messages import Text
from agent_loop.persistence import recorder
from agent_loop.session.header import SessionHeader
from tests.doubles.loop_rig import ask, history, of_type, open_rig
from tests.doubles.memory_store import MemoryStore
from tests.doubles.model import text

PLUGIN = {"kind": "plugin", "plugin": "p"}


async def stored(*entries: object) -> MemoryStore:
    """A store that holds one session with one whole turn."""
    store = MemoryStore()
    async with open_rig(*entries, store=store) as rig:  # type: ignore[arg-type]
        await ask(await rig.agent("s1"), "one")
    return store


async def test_a_resumed_session_goes_on_where_it_ended() -> None:
    """Loop specification 8.5.8: the history of both, seqs and turns without a gap."""
    store = await stored(text("first"))
    async with open_rig(text("second"), store=store) as rig:
        agent = (await rig.resume("s1")).agent
        await ask(agent, "two")

        assert history(agent) == [
            ("user", "one"),
            ("assistant", "first"),
            ("user", "two"),
            ("assistant", "second"),
        ]
        assert [fact.turn for fact in of_type(agent, TurnStart)] == [1, 2]
        assert len(rig.model.requests[0].messages) == 3

    assert [fact.seq for fact in store.facts("s1")] == list(range(agent.session.log.next_seq))


async def test_context_put_in_while_idle_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loop specification 8.5.6 and 7: written without a flush, and there after a resume."""
    monkeypatch.setattr(recorder, "WRITE_BEHIND_S", 0.0)
    store = MemoryStore()
    async with open_rig(store=store) as rig:
        agent = await rig.agent("s1")
        agent.inject([Text("mind this")], PLUGIN)
        await store.grows_to("s1", 3)

    async with open_rig(store=store) as rig:
        assert "mind this" in history((await rig.resume("s1")).agent)[0][1]


async def test_context_put_in_right_before_a_disposal_survives() -> None:
    """Loop specification 8.5.7: the last flush brings what no turn has flushed."""
    store = MemoryStore()
    async with open_rig(store=store) as rig:
        handle = await rig.handle("s1")
        handle.agent.inject([Text("mind this")], PLUGIN)
        await handle.dispose()

        assert store.count("s1") == 3


async def test_without_a_store_nothing_can_be_resumed() -> None:
    """Loop specification 8.5.9."""
    async with open_rig() as rig:
        with pytest.raises(HarnessError, match="persistence is not configured"):
            await rig.resume("s1")


async def test_what_is_not_stored_cannot_be_resumed() -> None:
    """Loop specification 8.5.12: in words, and nothing is made."""
    async with open_rig(store=MemoryStore()) as rig:
        with pytest.raises(NotFound):
            await rig.resume("s1")

        assert (list(rig.sessions), rig.agents.list()) == ([], ())


async def test_a_look_at_the_header_may_end_a_resume() -> None:
    """ACP, loading sessions: the editor's directory must fit the stored one."""

    async def refuses(header: SessionHeader) -> None:
        raise HarnessError(f"{header.id} lives elsewhere")

    async with open_rig(store=await stored(text("a"))) as rig:
        agent = await rig.agent("other")

        with pytest.raises(HarnessError, match="s1 lives elsewhere"):
            await rig.loop.resume("s1", agent.options, refuses)

        assert rig.agents.get("s1") is None


async def test_of_two_resumes_at_once_one_wins() -> None:
    """Loop specification 1.3: the id is looked at before and after the load."""
    async with open_rig(store=await stored(text("a"))) as rig:
        came: list[str] = []

        async def resume() -> None:
            try:
                await rig.resume("s1")
                came.append("made")
            except Duplicate:
                came.append("refused")

        async with anyio.create_task_group() as group:
            group.start_soon(resume)
            group.start_soon(resume)

        assert sorted(came) == ["made", "refused"]
