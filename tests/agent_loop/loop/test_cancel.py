"""Cancelling and aborting: where it lands, what is left, and that nothing of it reaches the next prompt."""

from collections.abc import Awaitable

import anyio
from anyio.lowlevel import checkpoint

from agent_loop.events.bus import Next
from agent_loop.events.facts import (
    AssistantMessage,
    EndReason,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from agent_loop.events.moments import Checkpoint, StatusChanged, TurnStarted
from agent_loop.events.waterfalls import (
    TURN_CONTINUATION,
    Continuation,
)
from agent_loop.messages import Text
from tests.doubles.loop_rig import ask, at, ends, history, hung, of_type, open_rig, reason, settle, types
from tests.doubles.model import HANG, calls, text


async def test_a_cancel_while_idle_does_not_reach_the_next_prompt() -> None:
    """Loop specification 8.1.1: an idle cancel is nothing."""
    async with open_rig(text("a")) as rig:
        agent = await rig.agent()

        agent.cancel()
        await ask(agent)

        assert ends(agent) == ["completed"]


async def test_a_prompt_cancelled_in_the_same_tick_leaves_nothing() -> None:
    """Loop specification 8.1.2: no turn, no status, no text in the log."""
    async with open_rig() as rig:
        statuses = rig.heard(StatusChanged)
        agent = await rig.agent()

        agent.send([Text("never mind")])
        agent.cancel()
        await settle(agent)
        await checkpoint()

        assert (list(agent.session.log), statuses, agent.status) == ([], [], "idle")


async def test_whoever_waits_for_a_prompt_that_is_cancelled_before_its_turn_is_released() -> None:
    """Loop specification 8.1.3: nobody waits for ever."""
    async with open_rig() as rig:
        agent = await rig.agent()
        await checkpoint()
        order: list[str] = []

        async def waits() -> None:
            agent.send([Text("never mind")])
            order.append("waits")
            await settle(agent)
            order.append("released")

        async def cancels() -> None:
            order.append("cancels")
            agent.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(waits)
            group.start_soon(cancels)

        assert (order, list(agent.session.log)) == (["waits", "cancels", "released"], [])


async def test_a_cancelled_answer_ends_the_turn_in_the_words_of_whoever_stopped_it() -> None:
    """Loop specification 8.1.4 and 13: the caller's text and cause are the log's."""
    async with open_rig(HANG) as rig:
        agent = await rig.agent()
        await hung(rig, agent)

        agent.cancel("changed my mind", "client")
        await settle(agent)

        assert reason(agent) == EndReason("aborted", "client", "changed my mind")
        assert (agent.status, rig.model.closed) == ("idle", 1)


async def test_an_aborted_answer_says_aborted() -> None:
    """Loop specification 8.2.12 and 8.6.31."""
    async with open_rig(HANG) as rig:
        agent = await rig.agent()
        await hung(rig, agent)

        agent.abort()
        await settle(agent)

        assert reason(agent) == EndReason("aborted", "plugin", "aborted")


async def test_after_a_cancelled_turn_the_next_prompt_runs() -> None:
    """Loop specification 8.1.6."""
    async with open_rig(HANG, text("b")) as rig:
        agent = await rig.agent()
        await hung(rig, agent)
        agent.cancel()
        await settle(agent)

        await ask(agent, "again")

        assert ends(agent) == ["aborted", "completed"]
        assert history(agent)[1:] == [("assistant", "partial"), ("user", "again"), ("assistant", "b")]


async def test_a_prompt_sent_right_after_a_cancel_runs_when_the_old_turn_has_ended() -> None:
    """Loop specification 6.1.10: a wake that lands before the old turn converged is not lost."""
    async with open_rig(HANG, text("b")) as rig:
        agent = await rig.agent()
        await hung(rig, agent)

        agent.cancel()
        agent.send([Text("again")])
        await settle(agent)

        assert ends(agent) == ["aborted", "completed"]


async def test_a_turn_start_listener_that_cancels_stops_the_turn_before_the_model() -> None:
    """Loop specification 8.1.7."""
    async with open_rig() as rig:
        agent = await rig.agent()
        rig.once(TurnStarted, lambda _: agent.cancel("not now"))

        await ask(agent)

        assert (rig.model.requests, reason(agent).text) == ([], "not now")


async def test_a_cancel_beats_a_vote_to_go_on() -> None:
    """Loop specification 8.1.8: asked after the continuation waterfall."""

    async def cancels(value: Continuation, next: Next[Continuation, Awaitable[bool]]) -> bool:
        agent.cancel("no more")
        return True

    async with open_rig(text("a")) as rig:
        agent = await rig.agent()
        rig.bus.around(TURN_CONTINUATION, cancels)

        await ask(agent)

        assert (len(rig.model.requests), reason(agent).text) == (1, "no more")


async def test_a_running_listener_that_cancels_leaves_no_turn() -> None:
    """Loop specification 8.1.9: the token exists before `running` is told."""
    async with open_rig() as rig:
        statuses = rig.heard(StatusChanged)
        agent = await rig.agent()
        rig.once(StatusChanged, lambda _: agent.cancel())

        await ask(agent)

        assert list(agent.session.log) == []
        assert [moment.status for moment in statuses] == ["running", "idle"]


async def test_a_cancel_takes_the_steering_with_it() -> None:
    """Loop specification 8.1.10: it is neither logged nor run later."""
    async with open_rig(HANG) as rig:
        agent = await rig.agent()
        await hung(rig, agent)

        agent.steer([Text("left")])
        agent.cancel()
        await settle(agent)

        assert ends(agent) == ["aborted"]
        assert "steering/message" not in types(agent.session.log)


async def test_waiting_for_a_cancelled_prompt_goes_on_to_its_replacement() -> None:
    """Loop specification 8.1.11: send A, wait, cancel, send B in one tick."""
    async with open_rig(text("b")) as rig:
        agent = await rig.agent()

        agent.send([Text("A")])
        agent.cancel()
        agent.send([Text("B")])
        await settle(agent)

        assert [fact.content for fact in of_type(agent, UserMessage)] == [(Text("B"),)]
        assert ends(agent) == ["completed"]


async def test_a_running_listener_that_replaces_the_prompt_is_obeyed() -> None:
    """Loop specification 8.1.12."""

    def replaces(_: StatusChanged) -> None:
        agent.cancel()
        agent.send([Text("B")])

    async with open_rig(text("b")) as rig:
        statuses = rig.heard(StatusChanged)
        agent = await rig.agent()
        rig.once(StatusChanged, replaces)

        await ask(agent, "A")

        assert history(agent) == [("user", "B"), ("assistant", "b")]
        assert [moment.status for moment in statuses] == ["running", "idle"]


async def test_a_cancel_before_any_tool_starts_gives_every_call_a_result() -> None:
    """Loop specification 8.1.14: none runs, none dangles."""
    async with open_rig(calls(("c1", "{}"), ("c2", "{}"))) as rig:
        agent = await rig.agent()
        at(agent, AssistantMessage, lambda _: agent.cancel())

        await ask(agent)

        assert rig.worker.began == []
        results = of_type(agent, ToolResult)
        assert [(fact.call_id, fact.outcome, fact.is_error) for fact in results] == [
            ("c1", "interrupted", True),
            ("c2", "interrupted", True),
        ]
        assert [fact.card for fact in results] == [None, None]


async def test_a_message_sent_during_the_flush_survives_a_cancel_before_it() -> None:
    """Loop specification 4.4.36: such a cancel is none of the next turn's business."""
    flushing, release = anyio.Event(), anyio.Event()

    async def slow(moment: Checkpoint) -> None:
        if moment.durable and len(of_type(agent, TurnEnd)) == 1:
            flushing.set()
            await release.wait()

    async with open_rig(text("a"), text("b")) as rig:
        agent = await rig.agent()
        rig.bus.on(Checkpoint, slow)
        agent.send([Text("one")])
        await flushing.wait()

        agent.cancel()
        agent.send([Text("two")])
        release.set()
        await settle(agent)

        assert ends(agent) == ["completed", "completed"]


async def test_steering_that_comes_after_the_cancel_is_the_next_turns() -> None:
    """Our promise: nothing is put into a turn that no step will read any more."""

    def cancels(_: TurnStarted) -> None:
        agent.cancel()
        agent.steer([Text("instead")])

    async with open_rig(text("b")) as rig:
        agent = await rig.agent()
        rig.once(TurnStarted, cancels)

        await ask(agent, "first")

        assert ends(agent) == ["aborted", "completed"]
        assert [fact.trigger.kind for fact in of_type(agent, TurnStart)] == ["message", "message"]
        assert history(agent) == [("user", "first"), ("user", "instead"), ("assistant", "b")]


async def test_a_cancel_is_one_agents_affair() -> None:
    """Loop specification 4.4.41 and 8.6.25."""
    async with open_rig(HANG, text("b")) as rig:
        one, other = await rig.agent("s1"), await rig.agent("s2")
        await hung(rig, one)
        other.send([Text("hi")])

        one.cancel()
        await settle(other)
        await settle(one)

        assert (ends(one), ends(other)) == (["aborted"], ["completed"])
