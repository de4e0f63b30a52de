"""The calls of one answer: order, company, and the way of each from `tool/call` to `tool/result`."""

import asyncio
from collections.abc import Awaitable

import pytest
from anyio.lowlevel import checkpoint

from agent_loop.cards import Card, CardText
from agent_loop.errors import HarnessError
from agent_loop.events.bus import Next
from agent_loop.events.facts import ToolCall, ToolResult, ToolStarted
from agent_loop.events.moments import Checkpoint
from agent_loop.loop.tool_calls import NOT_RECORDED
from agent_loop.messages import Text
from agent_loop.tools.tool import EXECUTE, PreparedCall, ToolContext, ToolOutcome
from tests.doubles.loop_rig import ask, at, ends, of_type, open_rig, types
from tests.doubles.model import answer, call, calls, text
from tests.doubles.worker import Meeting

SAFE_A, SAFE_B = '{"job": "a", "safe": true}', '{"job": "b", "safe": true}'
ALONE = '{"job": "alone"}'
ExecuteNext = Next[PreparedCall, Awaitable[ToolOutcome]]


class Diary:
    """Who came and went in a tool, in order; each call stays for as many turns as it is told."""

    def __init__(self, **turns: int) -> None:
        self.entries: list[str] = []
        self._turns = turns

    async def prepare(self, ctx: ToolContext, job: str) -> None:
        self.entries.append(f"look {ctx.call_id}")

    async def __call__(self, ctx: ToolContext, job: str) -> None:
        self.entries.append(f"> {ctx.call_id}")
        for _ in range(self._turns.get(ctx.call_id, 1)):
            await checkpoint()
        self.entries.append(f"< {ctx.call_id}")


async def test_calls_run_one_after_the_other_unless_they_say_otherwise() -> None:
    """Loop specification 4.2.15: sequential; each is prepared when the one before has ended."""
    async with open_rig(calls(("c1", "{}"), ("c2", "{}")), text("ok")) as rig:
        diary = Diary()
        rig.worker.body, rig.worker.on_prepare = diary, diary.prepare
        agent = await rig.agent()
        await ask(agent)

        assert diary.entries == ["look c1", "> c1", "< c1", "look c2", "> c2", "< c2"]
        one_call = ["tool/call", "tool/started", "tool/result"]
        assert types(agent.session.log)[6:12] == one_call * 2


async def test_safe_neighbours_run_side_by_side() -> None:
    """Contract 2: they share a task group."""
    async with open_rig(calls(("c1", SAFE_A), ("c2", SAFE_B)), text("ok")) as rig:
        rig.worker.body = Meeting(2)
        agent = await rig.agent()
        await ask(agent)

        assert [fact.is_error for fact in of_type(agent, ToolResult)] == [False, False]


async def test_calls_and_results_are_logged_in_the_models_order_whoever_is_first() -> None:
    """Contract 2: also when the later call ends earlier."""
    async with open_rig(calls(("c1", SAFE_A), ("c2", SAFE_B)), text("ok")) as rig:
        rig.worker.body = Diary(c1=5, c2=1)
        agent = await rig.agent()
        await ask(agent)

        assert rig.worker.body.entries == ["> c1", "> c2", "< c2", "< c1"]
        assert types(agent.session.log)[6:12] == [
            "tool/call",
            "tool/call",
            "tool/started",
            "tool/started",
            "tool/result",
            "tool/result",
        ]
        assert [fact.call_id for fact in of_type(agent, ToolCall)] == ["c1", "c2"]
        assert [fact.call_id for fact in of_type(agent, ToolResult)] == ["c1", "c2"]


async def test_a_call_that_is_not_safe_is_a_barrier() -> None:
    """Contract 2: what stands before it has ended, what stands behind it has not begun."""
    wanted = calls(("c1", SAFE_A), ("c2", SAFE_B), ("c3", ALONE), ("c4", SAFE_A), ("c5", SAFE_B))
    async with open_rig(wanted, text("ok")) as rig:
        diary = Diary()
        rig.worker.body, rig.worker.on_prepare = diary, diary.prepare
        agent = await rig.agent()
        await ask(agent)

        entries = diary.entries
        assert set(entries[:6]) == {f"{mark} {name}" for mark in ("look", ">", "<") for name in ("c1", "c2")}
        assert entries[6:9] == ["look c3", "> c3", "< c3"]
        assert entries[9:11] == ["look c4", "look c5"]


async def test_before_a_body_runs_its_start_is_logged_and_on_record() -> None:
    """Contract 2: `tool/started`, then the checkpoint, then the body."""
    async with open_rig(calls(("c1", "{}")), text("ok")) as rig:
        agent = await rig.agent()
        order: list[str] = []

        async def records(moment: Checkpoint) -> None:
            await checkpoint()
            order.append(f"recorded up to {types(agent.session.log)[-1]}")

        async def body(ctx: ToolContext, job: str) -> None:
            order.append("body")

        rig.bus.on(Checkpoint, records)
        rig.worker.body = body
        at(agent, ToolStarted, lambda _: order.append("started"))
        await ask(agent)

        assert order[1:4] == ["started", "recorded up to tool/started", "body"]


@pytest.mark.parametrize(("effect", "durable"), [("none", False), ("read", False), ("write", True)])
async def test_the_disk_itself_is_asked_before_an_effect(effect: str, durable: bool) -> None:
    """Contract 7: nothing is both unlogged and done; looking costs no sync."""
    async with open_rig(calls(("c1", f'{{"effect": "{effect}"}}')), text("ok")) as rig:
        agent = await rig.agent()
        asked: list[bool] = []

        async def records(moment: Checkpoint) -> None:
            asked.append(moment.durable)

        rig.bus.on(Checkpoint, records)
        await ask(agent)

        assert asked == [False, durable, False, True]


@pytest.mark.parametrize("error", [OSError("disk full"), asyncio.CancelledError()])
async def test_a_call_that_cannot_be_recorded_does_not_run(error: BaseException) -> None:
    """Contract 2: `skipped`; the model is told, and the next call has its own chance."""
    async with open_rig(calls(("c1", "{}"), ("c2", "{}")), text("ok")) as rig:
        agent = await rig.agent()

        async def fails(_: Checkpoint) -> None:
            if types(agent.session.log)[-1] == "tool/started" and len(of_type(agent, ToolStarted)) == 1:
                raise error

        rig.bus.on(Checkpoint, fails)
        await ask(agent)

        assert rig.worker.began == ["c2"]
        first, second = of_type(agent, ToolResult)
        assert (first.content, first.outcome, first.error_code, first.is_error) == (
            (Text(NOT_RECORDED),),
            "skipped",
            "CHECKPOINT",
            True,
        )
        assert (second.outcome, ends(agent)) == ("ran", ["completed"])


async def test_a_veto_is_a_result_and_nothing_starts() -> None:
    """Contract 2: consent lies before `tool/started`."""

    async def refuses(value: PreparedCall, next: ExecuteNext) -> ToolOutcome:
        return ToolOutcome((Text("no"),), is_error=True, outcome="denied")

    async with open_rig(calls(("c1", "{}")), text("ok")) as rig:
        agent = await rig.agent()
        rig.bus.around(EXECUTE, refuses)
        await ask(agent)

        (result,) = of_type(agent, ToolResult)
        assert (result.outcome, result.is_error, result.content) == ("denied", True, (Text("no"),))
        assert (of_type(agent, ToolStarted), rig.worker.began) == ([], [])


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("elsewhere", "{}", "UNKNOWN_TOOL"),
        ("work", "{bad", "INVALID_ARGS"),
        ("work", '{"safe": []}', "INVALID_ARGS"),
    ],
)
async def test_a_call_that_makes_no_sense_is_answered_in_words(name: str, arguments: str, code: str) -> None:
    """Loop specification 8.4.4: the raw text is logged, a result exists, nothing starts."""
    async with open_rig(answer(*call("c1", name, arguments), finish="tool-calls"), text("ok")) as rig:
        agent = await rig.agent()
        await ask(agent)

        (called,), (result,) = of_type(agent, ToolCall), of_type(agent, ToolResult)
        assert (called.arguments, called.card is not None) == (arguments, True)
        assert (result.error_code, result.is_error, result.outcome) == (code, True, "skipped")
        assert result.card is not None
        assert result.card.status == "failed"
        assert (of_type(agent, ToolStarted), ends(agent)) == ([], ["completed"])


async def test_a_call_without_arguments_runs_with_none() -> None:
    """Loop specification 8.4.5."""
    async with open_rig(answer(*call("c1", "work", ""), finish="tool-calls"), text("ok")) as rig:
        agent = await rig.agent()
        await ask(agent)

        assert (rig.worker.began, of_type(agent, ToolCall)[0].arguments) == (["c1"], "")


async def test_a_failing_body_is_a_result_with_its_code() -> None:
    """Loop specification 8.4.10; the card says what went wrong."""

    async def fails(ctx: ToolContext, job: str) -> None:
        raise HarnessError("boom", code="BOOM")

    async with open_rig(calls(("c1", ALONE)), text("ok")) as rig:
        rig.worker.body = fails
        agent = await rig.agent()
        await ask(agent)

        (result,) = of_type(agent, ToolResult)
        words = "Error: work failed: boom"
        assert (result.error_code, result.content) == ("BOOM", (Text(words),))
        assert result.card == Card("other", "Work alone", body=(CardText(words),), status="failed")


@pytest.mark.parametrize("where", ["prepare", "middleware", "body"])
async def test_a_stray_cancellation_is_a_failed_call_and_spares_its_neighbours(where: str) -> None:
    """Contract 6: it must not end the group without a word."""

    async def strays(ctx: ToolContext, job: str) -> None:
        if ctx.call_id == "c1":
            raise asyncio.CancelledError

    async def middleware(value: PreparedCall, next: ExecuteNext) -> ToolOutcome:
        await strays(value.ctx, "")
        return await next(value)

    async with open_rig(calls(("c1", SAFE_A), ("c2", SAFE_B)), text("ok")) as rig:
        agent = await rig.agent()
        if where == "prepare":
            rig.worker.on_prepare = strays
        elif where == "middleware":
            rig.bus.around(EXECUTE, middleware)
        else:
            rig.worker.body = strays
        await ask(agent)

        assert [fact.is_error for fact in of_type(agent, ToolResult)] == [True, False]
        assert ends(agent) == ["completed"]
