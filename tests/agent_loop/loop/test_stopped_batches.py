"""Batches that are stopped on the way: every call is answered, and the answer says how far it came."""

from collections.abc import Awaitable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.events.bus import Next
from agent_loop.events.facts import (
    AssistantMessage,
    Fact,
    ToolCall,
    ToolResult,
    ToolStarted,
    UsageRecorded,
)
from agent_loop.events.moments import Checkpoint, ToolOutput, ToolTerminal
from agent_loop.loop.tool_calls import CUT_OFF, NEVER_STARTED
from agent_loop.messages import Text, text_of
from agent_loop.tools.tool import EXECUTE, PreparedCall, ToolContext, ToolOutcome
from tests.doubles.loop_rig import (
    ask,
    at,
    ends,
    of_type,
    open_rig,
    reason,
    settle,
    trouble,
    types,
)
from tests.doubles.model import calls
from tests.doubles.worker import hang

SAFE = '{"job": "a", "safe": true}'
TWO_SAFE = (("c1", SAFE), ("c2", SAFE))
TWO_ALONE = (("c1", "{}"), ("c2", "{}"))
BOTH = pytest.mark.parametrize("wanted", [TWO_SAFE, TWO_ALONE], ids=["side by side", "one by one"])


def told(fact: ToolResult) -> tuple[str, str]:
    return fact.outcome, text_of(fact.content)


async def test_a_tool_that_stops_the_turn_is_the_last_to_run() -> None:
    """Loop specification 8.3.2: one request, the second call never ran, the words are the tool's."""
    async with open_rig(calls(*TWO_ALONE)) as rig:
        agent = await rig.agent()

        async def aborts(ctx: ToolContext, job: str) -> None:
            agent.abort("the tool said so")

        rig.worker.body = aborts
        await ask(agent)

        assert (rig.worker.began, len(rig.model.requests)) == (["c1"], 1)
        assert reason(agent).text == "the tool said so"
        assert [told(fact) for fact in of_type(agent, ToolResult)] == [
            ("interrupted", "did "),
            ("interrupted", NEVER_STARTED),
        ]


async def test_a_cancelled_batch_says_of_each_call_how_far_it_came() -> None:
    """Contract 3: real results stay real; what was cut off is unknown; what never began had no effect."""
    async with open_rig(calls(("c1", SAFE), ("c2", SAFE), ("c3", SAFE), ("c4", "{}"))) as rig:
        agent = await rig.agent()

        async def body(ctx: ToolContext, job: str) -> None:
            match ctx.call_id:
                case "c1":
                    await hang(ctx, job)
                case "c3":
                    await checkpoint()
                    agent.cancel()

        rig.worker.body = body
        await ask(agent)

        assert [told(fact) for fact in of_type(agent, ToolResult)] == [
            ("interrupted", CUT_OFF),
            ("interrupted", "did a"),
            ("interrupted", "did a"),
            ("interrupted", NEVER_STARTED),
        ]
        statuses = [fact.card and fact.card.status for fact in of_type(agent, ToolResult)]
        assert statuses == ["cancelled", "cancelled", "cancelled", None]


async def test_a_body_that_finishes_in_spite_of_the_cancel_is_told_in_full() -> None:
    """Contract 3: the model still gets the real content."""

    async def stubborn(ctx: ToolContext, job: str) -> ToolOutcome:
        agent.cancel()
        with anyio.CancelScope(shield=True):
            await checkpoint()
        return ToolOutcome((Text("wrote half"),))

    async with open_rig(calls(("c1", "{}"))) as rig:
        agent = await rig.agent()
        rig.worker.body = stubborn
        await ask(agent)

        assert [told(fact) for fact in of_type(agent, ToolResult)] == [("interrupted", "wrote half")]
        assert ends(agent) == ["aborted"]


@BOTH
@pytest.mark.parametrize("kind", [AssistantMessage, UsageRecorded, ToolCall, ToolStarted])
async def test_a_cancel_before_the_body_starts_no_body(
    kind: type[Fact], wanted: tuple[tuple[str, str], ...]
) -> None:
    """Contract 6: ask the token right before every effect."""
    async with open_rig(calls(*wanted)) as rig:
        agent = await rig.agent()
        at(agent, kind, lambda _: agent.cancel())  # type: ignore[type-var]
        await ask(agent)

        assert (rig.worker.began, ends(agent)) == ([], ["aborted"])
        assert [told(fact) for fact in of_type(agent, ToolResult)] == [("interrupted", NEVER_STARTED)] * 2
        assert [fact.call_id for fact in of_type(agent, ToolCall)] == ["c1", "c2"]


async def test_a_cancel_while_somebody_is_asked_leaves_the_call_unstarted() -> None:
    """Contract 2: consent lies before `tool/started`; the question ends with the turn."""

    async def asks(value: PreparedCall, next: Next[PreparedCall, Awaitable[ToolOutcome]]) -> ToolOutcome:
        agent.cancel()
        await anyio.sleep_forever()
        raise AssertionError("nobody came back")

    async with open_rig(calls(("c1", "{}"))) as rig:
        agent = await rig.agent()
        rig.bus.around(EXECUTE, asks)
        await ask(agent)

        assert of_type(agent, ToolStarted) == []
        assert [told(fact) for fact in of_type(agent, ToolResult)] == [("interrupted", NEVER_STARTED)]


async def test_a_consent_that_comes_after_the_cancel_starts_nothing() -> None:
    """Contract 2: the core asks the token before `tool/started`."""

    async def late(value: PreparedCall, next: Next[PreparedCall, Awaitable[ToolOutcome]]) -> ToolOutcome:
        agent.cancel()
        return await next(value)

    async with open_rig(calls(("c1", "{}"))) as rig:
        agent = await rig.agent()
        rig.bus.around(EXECUTE, late)
        await ask(agent)

        assert (of_type(agent, ToolStarted), rig.worker.began) == ([], [])
        assert [told(fact) for fact in of_type(agent, ToolResult)] == [("interrupted", NEVER_STARTED)]


async def test_a_cancel_while_the_start_is_put_on_record_starts_no_body() -> None:
    """Contract 2: logged as started, so whoever reads the log after a crash is told to be careful."""
    async with open_rig(calls(("c1", "{}"))) as rig:
        agent = await rig.agent()

        async def slow(_: Checkpoint) -> None:
            if types(agent.session.log)[-1] == "tool/started":
                agent.cancel()
                await checkpoint()

        rig.bus.on(Checkpoint, slow)
        await ask(agent)

        assert rig.worker.began == []
        assert [fact.outcome for fact in of_type(agent, ToolResult)] == ["interrupted"]


async def test_a_cancel_in_the_tick_in_which_the_start_is_on_record_starts_no_body() -> None:
    """Contract 6: a scope whose task is awake already delivers nothing, so the token is asked again."""
    recording, recorded = anyio.Event(), anyio.Event()

    async def slow(_: Checkpoint) -> None:
        if types(agent.session.log)[-1] == "tool/started":
            recording.set()
            await recorded.wait()

    async with open_rig(calls(("c1", "{}"))) as rig:
        agent = await rig.agent()
        rig.bus.on(Checkpoint, slow)
        agent.send([Text("hi")])
        await recording.wait()

        recorded.set()
        agent.cancel()
        await settle(agent)

        assert (rig.worker.began, ends(agent)) == ([], ["aborted"])
        assert [told(fact) for fact in of_type(agent, ToolResult)] == [("interrupted", NEVER_STARTED)]


@pytest.mark.parametrize("waits", [True, False])
async def test_a_cancel_while_a_call_is_looked_at_shows_nobody_a_card(waits: bool) -> None:
    """Contract 2: one that nobody was shown has no card, whether or not the cancel was delivered."""

    async def looks(ctx: ToolContext, job: str) -> None:
        agent.cancel()
        if waits:
            await checkpoint()

    async with open_rig(calls(("c1", "{}"))) as rig:
        agent = await rig.agent()
        rig.worker.on_prepare = looks
        await ask(agent)

        assert [fact.card for fact in of_type(agent, ToolCall)] == [None]


@BOTH
@pytest.mark.parametrize("stop", ["cancel", "trouble"])
async def test_a_batch_that_was_stopped_asks_nobody_for_consent(
    stop: str, wanted: tuple[tuple[str, str], ...]
) -> None:
    """Contract 2: `tools/execute` is not entered for nothing."""
    asked: list[str] = []

    async def asks(value: PreparedCall, next: Next[PreparedCall, Awaitable[ToolOutcome]]) -> ToolOutcome:
        asked.append(value.ctx.call_id)
        return await next(value)

    async with open_rig(calls(*wanted)) as rig:
        agent = await rig.agent()
        rig.bus.around(EXECUTE, asks)
        at(agent, ToolCall, trouble if stop == "trouble" else lambda _: agent.cancel())
        await ask(agent)

        assert (asked, [fact.is_error for fact in of_type(agent, ToolResult)]) == ([], [True, True])


async def test_output_of_a_cancelled_turn_is_not_shown() -> None:
    """Contract 3: nothing of a cancelled turn follows its answer."""

    async def chatty(ctx: ToolContext, job: str) -> None:
        ctx.output("before", False)
        ctx.terminal("term-1")
        agent.cancel()
        ctx.output("after", False)
        ctx.terminal("term-2")

    async with open_rig(calls(("c1", "{}"))) as rig:
        agent = await rig.agent()
        shown, terminals = rig.heard(ToolOutput), rig.heard(ToolTerminal)
        rig.worker.body = chatty
        await ask(agent)

        assert [moment.text for moment in shown] == ["before"]
        assert terminals == [ToolTerminal("s1", 1, 1, "c1", "term-1")]
