"""What reaches a running turn from outside: steering, and context that is only put in."""

from collections.abc import Awaitable

import pytest

from agent_loop.events.bus import Next
from agent_loop.events.facts import (
    AssistantChunk,
    ContextMessage,
    SteeringMessage,
    TurnEnd,
    TurnStart,
)
from agent_loop.events.moments import (
    Moment,
    StatusChanged,
    Steered,
    StepEnded,
    TurnEnded,
)
from agent_loop.events.waterfalls import TURN_CONTINUATION, Continuation
from agent_loop.messages import Text
from agent_loop.tools.tool import ToolContext
from tests.doubles.loop_rig import ask, at, ends, history, hung, of_type, open_rig, settle, trouble, types
from tests.doubles.model import HANG, calls, text

PLUGIN = {"kind": "plugin", "plugin": "p"}


async def test_what_a_tool_steers_is_read_by_the_next_step() -> None:
    """Loop specification 8.2.5: logged before step 2 begins, in its request."""
    async with open_rig(calls(("c1", "{}")), text("heard")) as rig:
        told = rig.heard(Steered)
        agent = await rig.agent()
        ids: list[str] = []

        async def body(ctx: ToolContext, job: str) -> None:
            ids.append(agent.steer([Text("look here")], PLUGIN))

        rig.worker.body = body
        await ask(agent)

        (fact,) = of_type(agent, SteeringMessage)
        assert fact == SteeringMessage(1, ids[0], (Text("look here"),), PLUGIN)
        assert told == [Steered("s1", 1, ids[0])]
        assert types(agent.session.log).index("steering/message") < types(agent.session.log).index("step/end")
        steered = rig.model.requests[1].messages[-1]
        assert Text("look here") in steered.content


async def test_steering_alone_keeps_a_turn_going() -> None:
    """Loop specification 4.2.16: steered counts as a reason to go on."""
    async with open_rig(text("first"), text("second")) as rig:
        agent = await rig.agent()
        at(agent, AssistantChunk, lambda _: agent.steer([Text("and?")]))
        await ask(agent)

        assert ends(agent) == ["completed"]
        assert [role for role, _ in history(agent)] == ["user", "assistant", "user", "assistant"]


async def test_steering_while_idle_is_a_prompt() -> None:
    """Loop specification 8.2.6."""
    async with open_rig(text("a")) as rig:
        agent = await rig.agent()
        sent = agent.steer([Text("hi")])
        await settle(agent)

        assert of_type(agent, TurnStart)[0].message_ids == (sent,)
        assert of_type(agent, SteeringMessage) == []


@pytest.mark.parametrize("kind", [StepEnded, TurnEnded])
async def test_steering_behind_a_steps_end_is_not_lost(kind: type[Moment]) -> None:
    """Loop specification 8.3.3 and 5: in the turn while it can be, else as the next one's message."""
    async with open_rig(text("first"), text("second")) as rig:
        statuses = rig.heard(StatusChanged)
        agent = await rig.agent()
        rig.once(kind, lambda _: agent.steer([Text("more")]))
        await ask(agent)

        turns = 1 if kind is StepEnded else 2
        assert ends(agent) == ["completed"] * turns
        assert len(of_type(agent, SteeringMessage)) == 2 - turns
        assert "more" in history(agent)[2][1]
        assert [moment.status for moment in statuses] == ["running", "idle"]


async def test_steering_from_a_continuation_listener_overrides_its_own_no() -> None:
    """Loop specification 8.3.4."""

    async def steers(value: Continuation, next: Next[Continuation, Awaitable[bool]]) -> bool:
        if value.step == 1:
            agent.steer([Text("more")])
        return False

    async with open_rig(text("first"), text("second")) as rig:
        agent = await rig.agent()
        rig.bus.around(TURN_CONTINUATION, steers)
        await ask(agent)

        assert (len(rig.model.requests), ends(agent)) == (2, ["completed"])


async def test_steering_of_an_aborted_turn_is_the_next_turns_message() -> None:
    """Loop specification 8.3.6: abort keeps what waits."""
    async with open_rig(HANG, text("second")) as rig:
        agent = await rig.agent()
        await hung(rig, agent)
        steered = agent.steer([Text("instead")])

        agent.abort("user interrupt")
        await settle(agent)

        assert ends(agent) == ["aborted", "completed"]
        assert of_type(agent, TurnStart)[1].message_ids == (steered,)


async def test_an_aborted_turn_that_has_no_step_yet_keeps_its_steering_for_the_next() -> None:
    """Our promise: nothing is put into a turn that no step will read any more."""
    async with open_rig(text("second")) as rig:
        agent = await rig.agent()

        def aborts(_: Moment) -> None:
            agent.steer([Text("instead")])
            agent.abort()

        at(agent, TurnStart, lambda fact: aborts(StatusChanged("s1", "running")))
        await ask(agent)

        assert ends(agent) == ["aborted", "completed"]
        assert of_type(agent, SteeringMessage) == []


async def test_a_raising_steering_listener_loses_nothing_of_the_batch() -> None:
    """Loop specification 2, a gap cured: what was not logged yet is the next turn's."""
    async with open_rig(calls(("c1", "{}")), text("second")) as rig:
        agent = await rig.agent()

        async def body(ctx: ToolContext, job: str) -> None:
            for words in ("one", "two", "three"):
                agent.steer([Text(words)])

        rig.worker.body = body
        rig.once(Steered, trouble)
        await ask(agent)

        assert ends(agent) == ["error", "completed"]
        assert [fact.content for fact in of_type(agent, SteeringMessage)] == [(Text("one"),)]
        assert history(agent)[-3:] == [("user", "two"), ("user", "three"), ("assistant", "second")]


async def test_context_put_in_while_idle_is_read_with_the_next_prompt() -> None:
    """Loop specification 8.2.7: a turn of its own, no request, no status."""
    async with open_rig(text("a")) as rig:
        statuses = rig.heard(StatusChanged)
        agent = await rig.agent()
        agent.inject([Text("mind this")], PLUGIN)
        assert (types(agent.session.log), statuses) == (["turn/start", "context/message", "turn/end"], [])

        await ask(agent)

        assert [fact.turn for fact in of_type(agent, TurnEnd)] == [1, 2]
        assert "mind this" in history(agent)[0][1]
        assert len(rig.model.requests[0].messages) == 2


async def test_context_put_in_while_a_tool_runs_stands_behind_its_result() -> None:
    """Loop specification 8.2.8 and 6.24: one turn, the pair of call and result unbroken."""
    async with open_rig(calls(("c1", "{}"), ("c2", "{}")), text("a")) as rig:
        agent = await rig.agent()

        async def body(ctx: ToolContext, job: str) -> None:
            agent.inject([Text(f"seen by {ctx.call_id}")], PLUGIN)

        rig.worker.body = body
        await ask(agent)

        facts = types(agent.session.log)
        assert facts.index("context/message") == len(facts) - 1 - facts[::-1].index("tool/result") + 1
        assert [fact.turn for fact in of_type(agent, ContextMessage)] == [1, 1]
        assert ends(agent) == ["completed"]


async def test_context_put_in_during_the_flush_is_a_turn_of_its_own() -> None:
    """Loop specification 4.6.53: running, but the log says closed; the next prompt counts on from it."""
    async with open_rig(text("a"), text("b")) as rig:
        agent = await rig.agent()
        rig.once(TurnEnded, lambda _: agent.inject([Text("late")], PLUGIN))
        await ask(agent)
        await ask(agent)

        assert [(fact.turn, fact.trigger.kind) for fact in of_type(agent, TurnStart)] == [
            (1, "message"),
            (2, "injection"),
            (3, "message"),
        ]


async def test_context_put_in_as_the_agent_starts_running_does_not_take_the_turns_number() -> None:
    """Loop specification 4.1.4: the number is taken from the log, when the turn begins."""
    async with open_rig(text("a")) as rig:
        agent = await rig.agent()
        rig.once(StatusChanged, lambda _: agent.inject([Text("first")], PLUGIN))
        await ask(agent)

        assert [fact.trigger.kind for fact in of_type(agent, TurnStart)] == ["injection", "message"]
