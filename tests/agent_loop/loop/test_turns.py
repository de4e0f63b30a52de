"""Turns and steps as they should go: what is logged, what the model is asked, when a turn ends."""

from collections.abc import Awaitable

import pytest
from anyio.lowlevel import checkpoint

from agent_loop.chunks import BlockEnd, BlockStart, TextDelta, UsageChunk
from agent_loop.events.bus import Next
from agent_loop.events.facts import (
    AssistantChunk,
    AssistantMessage,
    EndReason,
    ErrorRecorded,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    Trigger,
    TurnEnd,
    TurnStart,
    UsageRecorded,
    UserMessage,
)
from agent_loop.events.moments import (
    AgentFailed,
    Moment,
    StatusChanged,
    StepEnded,
    StepStarted,
    StreamChunk,
    TurnEnded,
    TurnFlushed,
    TurnStarted,
)
from agent_loop.events.waterfalls import TURN_CONTINUATION, Continuation
from agent_loop.llm.provider import REQUEST, AgentRequest, ModelRequest
from agent_loop.loop.end_reason import FROM_INSIDE
from agent_loop.messages import USER, Text
from agent_loop.session.header import SessionHeader
from tests.doubles.loop_rig import ask, at, ends, history, of_type, open_rig, reason, settle, types
from tests.doubles.model import HANG, USAGE, answer, calls, said, text

PLAIN_TURN = [
    "turn/start",
    "user/message",
    "step/start",
    "assistant/chunk",
    "assistant/message",
    "usage",
    "step/end",
    "turn/end",
]


async def test_a_plain_turn_is_logged_in_the_one_order() -> None:
    """Loop specification 8.2.1 and 3.1: the canonical order of a turn."""
    async with open_rig(text("hello")) as rig:
        agent = await rig.agent()
        sent = agent.send([Text("hi")])
        await settle(agent)

        assert types(agent.session.log) == PLAIN_TURN
        facts = [fact for fact in agent.session.log if not isinstance(fact, AssistantChunk)]
        assert facts == [
            TurnStart(1, Trigger("message", USER), (sent,)),
            UserMessage(1, sent, (Text("hi"),), USER),
            StepStart(1, 1),
            AssistantMessage(1, 1, 1, (Text("hello"),)),
            UsageRecorded(1, 1, USAGE),
            StepEnd(1, 1),
            TurnEnd(1, EndReason("completed")),
        ]
        assert history(agent) == [("user", "hi"), ("assistant", "hello")]


async def test_the_moments_of_a_turn_come_in_order_and_after_their_facts() -> None:
    """Loop specification 2: append before emit; running first, idle after the flush."""
    async with open_rig(text("a")) as rig:
        agent = await rig.agent()
        heard: list[tuple[Moment, str]] = []

        def hear(moment: Moment) -> None:
            facts = types(agent.session.log)
            heard.append((moment, facts[-1] if facts else "nothing"))

        for kind in (
            StatusChanged, TurnStarted, StepStarted, StepEnded, TurnEnded, TurnFlushed,
        ):  # fmt: skip
            rig.bus.on(kind, hear)
        await ask(agent)

        assert heard == [
            (StatusChanged("s1", "running"), "nothing"),
            (TurnStarted("s1", 1), "user/message"),
            (StepStarted("s1", 1, 1), "step/start"),
            (StepEnded("s1", 1, 1), "step/end"),
            (TurnEnded("s1", 1, EndReason("completed")), "turn/end"),
            (TurnFlushed("s1", 1, None), "turn/end"),
            (StatusChanged("s1", "idle"), "turn/end"),
        ]


async def test_every_chunk_is_a_fact_and_then_a_moment() -> None:
    """Loop specification 8.2.4: the deltas rebuild the text."""
    async with open_rig(text("abc")) as rig:
        agent = await rig.agent()
        told = rig.heard(StreamChunk)
        await ask(agent)

        chunks = [fact.chunk for fact in of_type(agent, AssistantChunk)]
        assert chunks[:-1] == [
            BlockStart(0, "text"),
            TextDelta(0, "a"),
            TextDelta(0, "b"),
            TextDelta(0, "c"),
            BlockEnd(0),
            UsageChunk(USAGE),
        ]
        assert [moment.chunk for moment in told] == chunks


async def test_a_tool_call_is_answered_and_the_model_asked_again() -> None:
    """Loop specification 8.2.2."""
    async with open_rig(calls(("c1", '{"job": "it"}')), text("done")) as rig:
        agent = await rig.agent()
        await ask(agent)

        (called,), (result,) = of_type(agent, ToolCall), of_type(agent, ToolResult)
        assert (called.call_id, called.name, called.arguments) == ("c1", "work", '{"job": "it"}')
        assert (result.content, result.is_error, result.outcome) == ((Text("did it"),), False, "ran")
        assert [len(request.messages) for request in rig.model.requests] == [1, 3]
        assert history(agent)[1:] == [("assistant", "[c1]"), ("user", "c1: did it"), ("assistant", "done")]


async def test_the_request_carries_prompt_tools_and_model() -> None:
    """Loop specification 8.2.3: sections, then the agent's own words, a blank line between."""
    async with open_rig(text("a")) as rig:
        rig.prompt.section("house", 0, "Be brief.")
        agent = await rig.agent(system_prompt="Be kind.", model="script/large")
        await ask(agent)

        (request,) = rig.model.requests
        assert (request.provider, request.model, request.session_id) == ("script", "large", "s1")
        assert request.system == "Be brief.\n\nBe kind."
        assert [tool.name for tool in request.tools] == ["work"]


async def test_a_request_listener_chooses_the_model() -> None:
    """Loop specification 8.2.11 and 8.3.13."""

    async def chooses(value: AgentRequest, next: Next[AgentRequest, Awaitable[ModelRequest]]) -> ModelRequest:
        request = await next(value)
        return ModelRequest("script", f"chosen for {value.agent_id}", request.messages)

    async with open_rig(text("a")) as rig:
        rig.bus.around(REQUEST, chooses)
        agent = await rig.agent(model="")
        await ask(agent)

        assert [request.model for request in rig.model.requests] == ["chosen for s1"]


@pytest.mark.parametrize("model", ["", "script", "/m"])
async def test_an_agent_without_a_model_says_how_to_give_it_one(model: str) -> None:
    """Loop specification 8.3.12: names the option and the waterfall; nobody is asked."""
    async with open_rig() as rig:
        agent = await rig.agent(model=model)
        await ask(agent)

        assert "`model` option" in reason(agent).message
        assert "`agent/request` middleware" in reason(agent).message
        assert [fact.code for fact in of_type(agent, ErrorRecorded)] == ["NO_MODEL"]
        assert rig.model.requests == []


async def test_an_unknown_provider_fails_the_turn_in_words() -> None:
    """Loop specification 1.6: no adapter."""
    async with open_rig() as rig:
        agent = await rig.agent(model="elsewhere/m")
        await ask(agent)

        assert "no provider is named 'elsewhere'" in reason(agent).message


async def test_a_listener_may_ask_for_further_steps() -> None:
    """Loop specification 8.2.9: three steps, three requests."""

    async def three(value: Continuation, next: Next[Continuation, Awaitable[bool]]) -> bool:
        assert not await next(value)
        return value.step < 3

    async with open_rig(text("a"), text("b"), text("c")) as rig:
        rig.bus.around(TURN_CONTINUATION, three)
        agent = await rig.agent()
        await ask(agent)

        assert [fact.step for fact in of_type(agent, StepStart)] == [1, 2, 3]
        assert (len(rig.model.requests), ends(agent)) == (3, ["completed"])


async def test_a_listener_may_end_the_turn_after_a_tool() -> None:
    """Loop specification 8.2.10: the tool has run all the same."""

    async def stops(value: Continuation, next: Next[Continuation, Awaitable[bool]]) -> bool:
        assert value == Continuation("s1", 1, 1, wanted=True)
        return False

    async with open_rig(calls(("c1", "{}"))) as rig:
        rig.bus.around(TURN_CONTINUATION, stops)
        agent = await rig.agent()
        await ask(agent)

        assert (len(rig.model.requests), rig.worker.began, ends(agent)) == (1, ["c1"], ["completed"])


async def test_a_turn_ends_at_its_limit_of_steps() -> None:
    """ACP, prompt turn, stop reason max_turn_requests; contract 7: `max_steps`."""
    async with open_rig(calls(("c1", "{}")), calls(("c2", "{}")), text("next turn")) as rig:
        agent = await rig.agent(max_steps=2)
        await ask(agent)
        await ask(agent)

        assert (ends(agent), rig.worker.began) == (["max-steps", "completed"], ["c1", "c2"])


async def test_messages_queued_before_a_turn_share_it_in_order() -> None:
    """Loop specification 4.1.6; contract 1: `turn/start` lists every message."""
    async with open_rig(text("both")) as rig:
        agent = await rig.agent()
        plugin = {"kind": "plugin", "plugin": "p"}
        first = agent.send([Text("one")], plugin)
        second = agent.send([Text("two")])
        await settle(agent)

        (start,) = of_type(agent, TurnStart)
        assert (start.trigger, start.message_ids) == (Trigger("message", plugin), (first, second))
        assert history(agent)[:2] == [("user", "one"), ("user", "two")]


async def test_a_message_sent_during_a_turn_starts_the_next_without_an_idle_between() -> None:
    """Loop specification 8.2.19 and 4.1.7."""
    async with open_rig(text("a"), text("b")) as rig:
        statuses = rig.heard(StatusChanged)
        agent = await rig.agent()
        at(agent, AssistantChunk, lambda _: agent.send([Text("next")]))
        await ask(agent)

        assert [fact.turn for fact in of_type(agent, TurnStart)] == [1, 2]
        assert [moment.status for moment in statuses] == ["running", "idle"]


async def test_an_exhausted_script_fails_the_turn_once() -> None:
    """Loop specification 8.2.21: one `error` fact, one moment."""
    async with open_rig() as rig:
        failures = rig.heard(AgentFailed)
        agent = await rig.agent()
        await ask(agent)

        assert [fact.message for fact in of_type(agent, ErrorRecorded)] == ["script exhausted"]
        assert [(failure.turn, failure.step) for failure in failures] == [(1, 1)]
        assert reason(agent) == EndReason("error", error_kind="unknown", message=FROM_INSIDE)


async def test_a_second_session_on_the_same_facts_has_the_same_history() -> None:
    """Loop specification 8.2.24 and 8.3.15: replay derives the same, and turns go on."""
    async with open_rig(calls(("c1", "{}")), text("done"), text("more")) as rig:
        agent = await rig.agent()
        await ask(agent)

        again, _ = rig.sessions.create(SessionHeader("copy", 1), list(agent.session.log.rows_since(0)))

        assert again.messages() == agent.session.messages()
        assert types(again.log) == types(agent.session.log)
        assert again.log.last_turn == 1


async def test_sessions_run_side_by_side() -> None:
    """Our promise: one agent's pause is not another's."""
    async with open_rig(HANG, text("b")) as rig:
        slow, quick = await rig.agent("s1"), await rig.agent("s2")
        slow.send([Text("hi")])
        await checkpoint()
        await checkpoint()
        await ask(quick)

        assert (ends(quick), slow.status) == (["completed"], "running")
        slow.cancel()
        await settle(slow)


async def test_a_tools_answer_reaches_the_next_turn_too() -> None:
    """Loop specification 3.3: history is the whole log's."""
    async with open_rig(answer(*said("a")), text("b")) as rig:
        agent = await rig.agent()
        await ask(agent, "one")
        await ask(agent, "two")

        assert [len(request.messages) for request in rig.model.requests] == [1, 3]
