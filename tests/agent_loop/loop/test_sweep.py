"""The cancel sweep: whatever happens at whichever point of a turn, nothing is lost and the agent goes on."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from agent_loop.agent.agent import ReactLoopAgent
from agent_loop.events.facts import AssistantChunk, ErrorRecorded, TurnEnd, TurnStart
from agent_loop.events.facts_json import fact_to_json
from agent_loop.events.moments import AgentFailed, StatusChanged, TurnFlushed
from agent_loop.loop import step
from agent_loop.messages import Text
from tests.agent_loop.loop.scenarios import SCENARIOS, Scenario
from tests.doubles.loop_rig import Rig, check_log, ends, history, of_type, open_rig, settle
from tests.doubles.memory_store import MemoryStore
from tests.doubles.model import text
from tests.doubles.points import Points

SAMPLE = 12
"""Points per scenario and deed in a normal run; the marked sweep takes them all."""


class Deed:
    """What happens at the point; `stops` says how the turn must end when it was open there."""

    stops: str | None = None

    def __init__(self, agent: ReactLoopAgent) -> None:
        self.agent = agent

    def __call__(self) -> None:
        raise NotImplementedError


class Cancels(Deed):
    stops = "aborted"

    def __call__(self) -> None:
        self.agent.cancel("enough")


class Aborts(Deed):
    stops = "aborted"

    def __call__(self) -> None:
        self.agent.abort("enough")


class Disposes(Deed):
    stops = "disposed"

    def __call__(self) -> None:
        self.agent.begin_disposal()


class Raises(Deed):
    def __call__(self) -> None:
        raise RuntimeError("a listener's own trouble")


class Strays(Deed):
    def __call__(self) -> None:
        raise asyncio.CancelledError("of a future somebody else cancelled")


class CancelsAndRaises(Deed):
    def __call__(self) -> None:
        self.agent.cancel("enough")
        raise RuntimeError("and trouble")


DEEDS: tuple[Callable[[ReactLoopAgent], Deed], ...] = (
    Cancels,
    Aborts,
    Disposes,
    Raises,
    Strays,
    CancelsAndRaises,
)


@dataclass
class Moment:
    """What was true when the deed was done."""

    turn: int | None
    next_seq: int
    requests: int
    began: int
    failed: bool


async def passed(scenario: Scenario) -> list[str]:
    """The names of the points of an undisturbed run."""
    async with open_rig(*scenario.entries, store=MemoryStore()) as rig:
        agent = await rig.agent()
        scenario.prepare(rig, agent)
        points = Points(rig, agent)
        agent.send([Text("go")])
        await settle(agent)
        return list(points.names)


async def disturbed(scenario: Scenario, deed_of: Callable[[ReactLoopAgent], Deed], at: int) -> None:
    """Run once with the deed done at that point, then check every promise."""
    store = MemoryStore()
    async with open_rig(*scenario.entries, store=store) as rig:
        statuses = rig.heard(StatusChanged)
        failures, flushes = rig.heard(AgentFailed), rig.heard(TurnFlushed)
        agent = await rig.agent()
        scenario.prepare(rig, agent)
        points = Points(rig, agent, at)
        deed = deed_of(agent)
        seen: list[Moment] = []

        def act() -> None:
            log = agent.session.log
            failed = any(fact.turn == log.open_turn for fact in of_type(agent, ErrorRecorded))
            seen.append(
                Moment(log.open_turn, log.next_seq, len(rig.model.requests), len(rig.worker.began), failed)
            )
            deed()

        points.act = act
        agent.send([Text("go")])
        await settle(agent)

        assert len(seen) == 1, "the point was not reached"
        check_log(agent)
        if deed.stops is not None and seen[0].turn is not None:
            check_stopped(rig, agent, seen[0], deed.stops)
        check_reported_once(agent, [*failures], [*flushes])
        if agent.status != "disposed":
            await check_answers(rig, agent)
    check_trace([moment.status for moment in statuses])
    assert [fact_to_json(f) for f in store.facts("s1")] == [fact_to_json(f) for f in agent.session.log]


def check_stopped(rig: Rig, agent: ReactLoopAgent, then: Moment, kind: str) -> None:
    """Once stopped, the turn began nothing more, and ended for that reason."""
    (end,) = (fact for fact in of_type(agent, TurnEnd) if fact.turn == then.turn)
    assert end.reason.kind == ("error" if then.failed else kind)
    assert kind != "aborted" or then.failed or end.reason.text == "enough"
    late = [f for f in of_type(agent, AssistantChunk) if f.seq >= then.next_seq and f.turn == then.turn]
    assert late == []
    if agent.session.log.last_turn == then.turn:
        assert (len(rig.model.requests), len(rig.worker.began)) == (then.requests, then.began)


def check_reported_once(
    agent: ReactLoopAgent, failures: list[AgentFailed], flushes: list[TurnFlushed]
) -> None:
    """A turn that failed says so once, in the log and to listeners; a failed flush says so beside it."""
    for turn in (start.turn for start in of_type(agent, TurnStart)):
        unsaved = [flush for flush in flushes if flush.turn == turn and flush.error is not None]
        assert len([fact for fact in of_type(agent, ErrorRecorded) if fact.turn == turn]) <= 1
        assert len([failure for failure in failures if failure.turn == turn]) <= 1 + len(unsaved)


def check_trace(trace: list[str]) -> None:
    """Running and idle take turns, and disposed is the last of all."""
    assert trace.pop() == "disposed"
    assert trace == ["running", "idle"] * (len(trace) // 2) + ["running"] * (len(trace) % 2)


async def check_answers(rig: Rig, agent: ReactLoopAgent) -> None:
    """The next message is answered as if nothing had been."""
    rig.model.entries.clear()
    rig.model.entries.append(text("here"))
    agent.send([Text("still there?")])
    await settle(agent)
    assert ends(agent)[-1] == "completed"
    assert history(agent)[-2:] == [("user", "still there?"), ("assistant", "here")]


@pytest.fixture(autouse=True)
def _paced_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "PACE_EVERY", 4)


@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_some_point_of_a_turn_may_be_disturbed(
    scenario: Scenario, deed: Callable[[ReactLoopAgent], Deed]
) -> None:
    """Our promise: a seeded sample of the sweep below, in every run."""
    names = await passed(scenario)
    chance = random.Random(f"{scenario.name} {deed}")

    for at in chance.sample(range(len(names)), SAMPLE):
        await disturbed(scenario, deed, at)


@pytest.mark.sweep
@pytest.mark.parametrize("deed", DEEDS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
async def test_every_point_of_a_turn_may_be_disturbed(
    scenario: Scenario, deed: Callable[[ReactLoopAgent], Deed]
) -> None:
    """Our promise: cancel, disposal and a raising listener find no point that is not ready for them."""
    for at in range(len(await passed(scenario))):
        await disturbed(scenario, deed, at)
