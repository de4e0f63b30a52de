"""Listeners and observers that raise: a balanced log, one report, and a next turn that runs."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agent_loop.errors import HarnessError, ProviderError
from agent_loop.events.bus import Next, Waterfall
from agent_loop.events.facts import (
    EndReason,
    ErrorRecorded,
    Fact,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnStart,
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
    TurnStarted,
)
from agent_loop.events.waterfalls import STEP_RESULT, TURN_CONTINUATION
from agent_loop.llm.provider import REQUEST, STREAM
from agent_loop.loop.end_reason import FROM_INSIDE
from agent_loop.messages import Text
from agent_loop.prompt.system_prompt import ASSEMBLE
from tests.doubles.loop_rig import Rig, ask, at, ends, hung, of_type, open_rig, reason, settle, trouble, types
from tests.doubles.model import HANG, calls, text

WORDS = "a listener's own trouble"
FAILED = EndReason("error", error_kind="unknown", message=FROM_INSIDE)
DOWN = ProviderError("server", "down", status=503, provider="script", retry_after_s=2)
OPENED = ["turn/start", "user/message"]
FIRST_STEP = [*OPENED, "step/start"]


async def failing_turn(rig: Rig, arrange: Callable[..., object]) -> tuple[list[str], list[AgentFailed]]:
    """One disturbed turn, and a second one that must run; the first one's facts, and who was told."""
    failures = rig.heard(AgentFailed)
    agent = await rig.agent()
    arrange(rig, agent)
    agent.send([Text("one")])
    await settle(agent)
    logged = types(agent.session.log)

    rig.model.entries.clear()
    rig.model.entries.append(text("second"))
    await ask(agent, "two")
    assert ends(agent)[1:] == ["completed"]
    return logged, failures


@pytest.mark.parametrize(
    ("kind", "logged"),
    [
        (TurnStarted, [*OPENED, "error", "turn/end"]),
        (StepStarted, [*FIRST_STEP, "step/end", "error", "turn/end"]),
        (StreamChunk, [*FIRST_STEP, "assistant/chunk", "step/end", "error", "turn/end"]),
        (
            StepEnded,
            [*FIRST_STEP, "assistant/chunk", "assistant/message", "usage", "step/end", "error", "turn/end"],
        ),
        (
            TurnEnded,
            [*FIRST_STEP, "assistant/chunk", "assistant/message", "usage", "step/end", "turn/end"],
        ),
    ],
)
async def test_a_raising_listener_fails_its_turn_and_no_other(kind: type[Moment], logged: list[str]) -> None:
    """Loop specification 8.3.26, 27, 32, 33 and 8.4.1, 2: balanced, one report, the step closed first."""
    async with open_rig(text("first")) as rig:
        found, failures = await failing_turn(rig, lambda rig, agent: rig.once(kind, trouble))

        assert found == logged
        assert [str(failure.error) for failure in failures] == [WORDS]


@pytest.mark.parametrize(
    ("kind", "logged"),
    [
        (TurnStart, ["turn/start", "error", "turn/end"]),
        (UserMessage, [*OPENED, "error", "turn/end"]),
        (StepStart, [*FIRST_STEP, "step/end", "error", "turn/end"]),
        (
            StepEnd,
            [*FIRST_STEP, "assistant/chunk", "assistant/message", "usage", "step/end", "error", "turn/end"],
        ),
    ],
)
async def test_a_raising_observer_fails_its_turn_and_no_other(kind: type[Fact], logged: list[str]) -> None:
    """Loop specification 8.3.31; contract 1: the exception reaches the appender, the fact stays."""
    async with open_rig(text("first")) as rig:
        found, failures = await failing_turn(rig, lambda rig, agent: at(agent, kind, trouble))  # type: ignore[type-var]

        assert found == logged
        assert [str(failure.error) for failure in failures] == [WORDS]


@pytest.mark.parametrize("place", [ASSEMBLE, REQUEST, STREAM, STEP_RESULT, TURN_CONTINUATION])
@pytest.mark.parametrize("error", [RuntimeError(WORDS), asyncio.CancelledError(WORDS)])
async def test_a_raising_middleware_fails_its_turn_and_no_other(
    place: Waterfall[object, object], error: BaseException
) -> None:
    """Loop specification 8.3.7; contract 6: a stray cancellation is a failure like any other."""
    left = [error]

    def raises(value: object, next: Next[object, object]) -> object:
        if left:
            raise left.pop()
        return next(value)

    async with open_rig(text("first")) as rig:
        found, failures = await failing_turn(rig, lambda rig, agent: rig.bus.around(place, raises))

        assert found[-3:] == ["step/end", "error", "turn/end"]
        assert [failure.error for failure in failures] == [error]


async def test_a_raising_turn_end_observer_costs_nothing() -> None:
    """Loop specification 8.3.37: the fact is logged, one `turn/end`, nothing to fail any more."""
    async with open_rig(text("first")) as rig:
        found, failures = await failing_turn(rig, lambda rig, agent: at(agent, TurnEnd, trouble))

        assert (found[-1], found.count("turn/end"), failures) == ("turn/end", 1, [])


async def test_a_step_end_listener_that_raises_after_a_tool_stops_the_turn() -> None:
    """Loop specification 8.2.18: no second request."""
    async with open_rig(calls(("c1", "{}")), text("never")) as rig:
        agent = await rig.agent()
        rig.once(StepEnded, trouble)
        await ask(agent)

        assert (len(rig.model.requests), reason(agent)) == (1, FAILED)


async def test_a_listener_of_failures_that_raises_leaves_the_providers_error_as_it_was() -> None:
    """Loop specification 8.3.28."""
    async with open_rig([DOWN]) as rig:
        agent = await rig.agent()
        rig.bus.on(AgentFailed, trouble)
        await ask(agent)

        data = {"provider": "script", "status": 503, "retryAfter": 2}
        assert reason(agent) == EndReason("error", error_kind="server", message="down", data=data)
        assert types(agent.session.log)[-3:] == ["step/end", "error", "turn/end"]


async def test_a_failed_turn_whose_end_is_not_liked_is_reported_once() -> None:
    """Loop specification 8.3.34: one `error` fact, one moment, whatever raises afterwards."""
    async with open_rig([DOWN]) as rig:
        failures = rig.heard(AgentFailed)
        agent = await rig.agent()
        rig.bus.on(TurnEnded, trouble)
        await ask(agent)

        assert [fact.message for fact in of_type(agent, ErrorRecorded)] == ["down"]
        assert [failure.step for failure in failures] == [1]


async def test_an_observer_of_the_error_that_raises_does_not_keep_the_turn_open() -> None:
    """Loop specification 8.3.35."""
    async with open_rig([DOWN]) as rig:
        agent = await rig.agent()
        at(agent, ErrorRecorded, trouble)
        await ask(agent)

        assert reason(agent).message == "down"


async def test_trouble_while_a_failed_step_closes_does_not_keep_it_open() -> None:
    """Loop specification 8.3.36."""
    async with open_rig() as rig:
        agent = await rig.agent()
        at(agent, StepStart, trouble)
        at(agent, StepEnd, trouble)
        await ask(agent)

        assert types(agent.session.log)[-3:] == ["step/end", "error", "turn/end"]


async def test_a_turn_that_was_disposed_of_reports_no_error_whatever_raises() -> None:
    """Loop specification 8.3.29 and 30."""
    async with open_rig(HANG) as rig:
        failures = rig.heard(AgentFailed)
        handle = await rig.handle()
        agent = handle.agent
        rig.bus.on(TurnEnded, trouble)
        await hung(rig, agent)

        await handle.dispose()

        assert (reason(agent), failures) == (EndReason("disposed"), [])
        assert of_type(agent, ErrorRecorded) == []


async def test_a_listener_that_disposes_and_raises_leaves_a_disposed_turn() -> None:
    """Loop specification 4.2.18: disposed beats the error."""

    def disposes(_: TurnStarted) -> None:
        agent.begin_disposal()
        trouble()

    async with open_rig() as rig:
        agent = await rig.agent()
        rig.once(TurnStarted, disposes)
        agent.send([Text("hi")])
        await settle(agent)

        assert (reason(agent), of_type(agent, ErrorRecorded)) == (EndReason("disposed"), [])


async def test_the_codes_of_our_own_errors_are_on_record() -> None:
    """Loop specification 4.2.21, 8.4.6 to 8: a stable code; UNKNOWN for a stranger's."""

    async def coded(value: object, next: Next[object, Awaitable[object]]) -> object:
        raise HarnessError("not today", code="CLOSED")

    async with open_rig() as rig:
        agent = await rig.agent()
        dispose = rig.bus.around(REQUEST, coded)  # type: ignore[arg-type]
        await ask(agent)
        dispose()
        await ask(agent)

        assert [(fact.message, fact.code) for fact in of_type(agent, ErrorRecorded)] == [
            ("not today", "CLOSED"),
            ("script exhausted", "UNKNOWN"),
        ]
        assert reason(agent) == FAILED
        assert of_type(agent, TurnEnd)[0].reason.message == "not today"


@pytest.mark.parametrize("status", ["running", "idle"])
async def test_a_raising_status_listener_disturbs_no_turn(status: str) -> None:
    """Loop specification 8.6.29 and 30."""

    def raises(moment: StatusChanged) -> None:
        if moment.status == status:
            trouble()

    async with open_rig(text("a")) as rig:
        agent = await rig.agent()
        rig.bus.on(StatusChanged, raises)
        await ask(agent)

        assert (ends(agent), agent.status) == (["completed"], "idle")


async def test_what_fails_before_a_turn_has_begun_is_no_fact_and_ends_no_driver() -> None:
    """Loop specification 4.1.8: told with step 0; the next message runs."""
    async with open_rig(text("a")) as rig:
        failures = rig.heard(AgentFailed)
        agent = await rig.agent()
        rig.clock.failing = OSError("no time")
        await ask(agent, "lost")
        assert list(agent.session.log) == []

        await ask(agent, "kept")

        assert [(failure.turn, failure.step, str(failure.error)) for failure in failures] == [
            (1, 0, "no time")
        ]
        assert ends(agent) == ["completed"]
