"""Batches in which something breaks: an observer, the registry, or the task they run in."""

from collections.abc import Awaitable, Callable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.events.facts import (
    AssistantMessage,
    Fact,
    ToolCall,
    ToolResult,
    ToolStarted,
    UsageRecorded,
)
from agent_loop.events.moments import AgentFailed
from agent_loop.messages import Text
from agent_loop.tools.registry import BoundCall
from agent_loop.tools.tool import PreparedCall, ToolContext, ToolOutcome
from tests.doubles.loop_rig import (
    PATIENCE_S,
    ask,
    at,
    check_log,
    ends,
    of_type,
    open_rig,
    trouble,
)
from tests.doubles.model import calls, text
from tests.doubles.worker import hang

SAFE = '{"job": "a", "safe": true}'
TWO_SAFE = (("c1", SAFE), ("c2", SAFE))
TWO_ALONE = (("c1", "{}"), ("c2", "{}"))
BOTH = pytest.mark.parametrize("wanted", [TWO_SAFE, TWO_ALONE], ids=["side by side", "one by one"])
Core = Callable[[PreparedCall], Awaitable[ToolOutcome]]


@BOTH
@pytest.mark.parametrize(
    ("kind", "began"),
    [(AssistantMessage, 0), (UsageRecorded, 0), (ToolCall, 0), (ToolStarted, 0), (ToolResult, 1)],
)
async def test_a_raising_observer_stops_the_batch_and_leaves_no_call_unanswered(
    kind: type[Fact], began: int, wanted: tuple[tuple[str, str], ...]
) -> None:
    """Contract 1: "a raising listener ends the turn" holds, and each call has its pair."""
    async with open_rig(calls(*wanted), text("second")) as rig:
        agent = await rig.agent()
        at(agent, kind, trouble)  # type: ignore[type-var]
        await ask(agent)

        together = wanted is TWO_SAFE and kind is ToolResult
        assert len(rig.worker.began) == began + together
        results = of_type(agent, ToolResult)
        assert [(fact.call_id, fact.is_error) for fact in results] == [
            (name, name not in rig.worker.began) for name in ("c1", "c2")
        ]
        assert (ends(agent), len(rig.model.requests)) == (["error"], 1)


async def test_a_raising_observer_lets_a_running_neighbour_finish() -> None:
    """Contract 6: one child's trouble does not end the group."""
    finished: list[str] = []

    async def body(ctx: ToolContext, job: str) -> None:
        for _ in range(1 if ctx.call_id == "c1" else 5):
            await checkpoint()
        finished.append(ctx.call_id)

    async with open_rig(calls(*TWO_SAFE)) as rig:
        agent = await rig.agent()
        rig.worker.body = body
        at(agent, ToolResult, trouble)
        await ask(agent)

        assert finished == ["c1", "c2"]
        assert [fact.outcome for fact in of_type(agent, ToolResult)] == ["ran", "ran"]


@BOTH
async def test_a_driver_that_is_cancelled_from_outside_leaves_a_balanced_log(
    wanted: tuple[tuple[str, str], ...],
) -> None:
    """Contract 6: a real cancellation passes, and cleans up on its way: `disposed`, each call answered."""
    async with open_rig(calls(*wanted)) as rig:
        agent = await rig.agent()
        running = anyio.Event()

        async def body(ctx: ToolContext, job: str) -> None:
            running.set()
            await hang(ctx, job)

        rig.worker.body = body
        agent.send([Text("hi")])
        await running.wait()
        rig.group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True), anyio.fail_after(PATIENCE_S):
            await agent.done.wait()

        assert ends(agent) == ["disposed"]
        began = len(rig.worker.began)
        outcomes = [fact.outcome for fact in of_type(agent, ToolResult)]
        assert outcomes == ["unknown"] * began + ["skipped"] * (2 - began)
        check_log(agent)


async def test_a_bug_of_the_registry_fails_the_turn_and_spares_the_neighbour(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Our promise: what never ought to raise has every call's pair behind it all the same."""
    bug = RuntimeError("a bug")

    async with open_rig(calls(*TWO_SAFE)) as rig:
        failures = rig.heard(AgentFailed)
        agent = await rig.agent()
        execute = rig.tools.execute

        async def fails(
            value: BoundCall, core: Callable[[PreparedCall], Awaitable[ToolOutcome]]
        ) -> ToolOutcome:
            if value.ctx.call_id == "c1":
                await checkpoint()
                raise bug
            return await execute(value, core)

        monkeypatch.setattr(rig.tools, "execute", fails)
        await ask(agent)

        assert [failure.error for failure in failures] == [bug]
        assert [fact.outcome for fact in of_type(agent, ToolResult)] == ["skipped", "ran"]
