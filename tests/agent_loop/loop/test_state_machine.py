"""Anything, in any order: a machine that does to an agent whatever others may do, and checks the log.

Deterministic: the machine owns its event loop and turns it by hand, so that an example that failed
fails again.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
from anyio.lowlevel import checkpoint
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from agent_loop.chunks import Finish
from agent_loop.errors import Disposed, ProviderError
from agent_loop.events import facts as f
from agent_loop.events import moments as m
from agent_loop.messages import Text
from agent_loop.session.invariants import Invariants
from agent_loop.tools.tool import ToolContext
from tests.doubles.loop_rig import check_history, check_log, history, of_type, open_rig, settle
from tests.doubles.model import HANG, Entry, answer, calls, said, text

PLUGIN = {"kind": "plugin", "plugin": "p"}
SAFE, ALONE = '{"job": "a", "safe": true}', '{"job": "b"}'
ANSWERS: dict[str, Entry] = {
    "text": text("answer"),
    "one tool": calls(("c", ALONE)),
    "many tools": calls(("c", SAFE), ("c", SAFE), ("d", ALONE), ("e", "{bad")),
    "hang": HANG,
    "fail": [*said("half")[:2], ProviderError("server", "down")],
    "cut": said("half"),
    "limit": answer(*said("much"), finish="max-tokens"),
    "refusal": answer(*said("no"), finish="refusal"),
    "empty": [Finish("stop")],
}
DEEDS = ["steer", "inject", "cancel", "abort"]
STEPS = st.integers(0, 60)
MOODS = st.lists(st.sampled_from(sorted(ANSWERS)), min_size=1, max_size=3)
TROUBLESOME: list[type[Any]] = [
    f.TurnStart, f.UserMessage, f.StepStart, f.AssistantChunk, f.AssistantMessage, f.ToolCall,
    f.ToolStarted, f.ToolResult, f.SteeringMessage, f.ContextMessage, f.StepEnd, f.ErrorRecorded, f.TurnEnd,
    m.StatusChanged, m.Queued, m.Discarded, m.TurnStarted, m.TurnEnded, m.TurnFlushed, m.StepStarted,
    m.StepEnded, m.StreamChunk, m.Steered, m.AgentFailed, m.Checkpoint,
]  # fmt: skip


class Trouble(Exception):
    """What the machine makes listeners raise."""


class Anything(RuleBasedStateMachine):
    """Rules are what an editor, a plugin and a provider may do; the log's invariants are the oracle."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.moods: deque[str] = deque()
        self.in_body = "nothing"
        self.raising: type[Any] | None = None
        self.sent: list[str] = []
        self.oracle = Invariants()
        self.broken: list[AssertionError] = []
        self.statuses: list[str] = []
        self.dropped: list[str] = []
        self.ready, self.leave = asyncio.Event(), asyncio.Event()
        self.life = self.loop.create_task(self._live())
        self.loop.run_until_complete(self.ready.wait())

    def teardown(self) -> None:
        """Whatever was done: the agent comes to rest, answers once more, and leaves a sound log."""
        try:
            self.loop.run_until_complete(self._come_to_rest())
        finally:
            self.leave.set()
            self.loop.run_until_complete(self.life)
            self.loop.close()
        assert self.broken == []
        check_log(self.agent)
        told = [name for fact in of_type(self.agent, f.TurnStart) for name in fact.message_ids]
        told += [fact.id for fact in of_type(self.agent, f.SteeringMessage)]
        assert len(told) == len(set(told)), "a message was carried twice"
        assert set(told) | set(self.dropped) == set(self.sent), "a message was lost"
        failed = [fact.turn for fact in of_type(self.agent, f.ErrorRecorded)]
        assert len(failed) == len(set(failed)), "a turn failed twice"
        assert self.statuses.pop() == "disposed"
        assert self.statuses == (["running", "idle"] * len(self.statuses))[: len(self.statuses)]

    @rule(moods=MOODS, in_body=st.sampled_from([*DEEDS, "raise", "nothing"]), steps=STEPS)
    def send(self, moods: list[str], in_body: str, steps: int) -> None:
        if self.agent.status != "disposed":
            self.in_body = in_body
            self.moods.extend(moods)
            self.sent.append(self.now(lambda: self.agent.send([Text("hi")])))
        self.let_run(steps)

    @rule(deed=st.sampled_from(DEEDS), steps=STEPS)
    def meddle(self, deed: str, steps: int) -> None:
        self.now(lambda: self.do(deed))
        self.let_run(steps)

    @rule(kind=st.sampled_from(TROUBLESOME), steps=STEPS)
    def raise_once_at(self, kind: type[Any], steps: int) -> None:
        self.raising = kind
        self.let_run(steps)

    @rule(steps=STEPS)
    def wait(self, steps: int) -> None:
        self.let_run(steps)

    @rule()
    @precondition(lambda self: len(self.sent) > 5)
    def dispose(self) -> None:
        self.now(lambda: self.agent.begin_disposal())

    @invariant()
    def the_log_obeys_its_rules(self) -> None:
        assert self.broken == []

    @invariant()
    def a_history_at_rest_is_one_providers_take(self) -> None:
        if self.agent.session.log.open_step is None:
            check_history(self.agent.session.messages())

    def do(self, deed: str) -> None:
        """What plugins, editors and tools may do to an agent at any time."""
        try:
            match deed:
                case "steer":
                    self.sent.append(self.agent.steer([Text("steered")]))
                case "inject":
                    self.agent.inject([Text("context")], PLUGIN)
                case "cancel":
                    self.agent.cancel()
                    assert (self.agent.inbox.queued, self.agent.inbox.steering) == (0, 0)
                case "abort":
                    self.agent.abort()
        except Disposed:
            assert self.agent.status == "disposed"
        except Trouble:
            assert deed == "inject", "only who appends hears of an observer's trouble"

    def let_run(self, steps: int) -> None:
        async def turns() -> None:
            for _ in range(steps):
                await checkpoint()

        self.loop.run_until_complete(turns())

    def now(self, act: Callable[[], Any]) -> Any:
        async def step() -> Any:
            return act()

        return self.loop.run_until_complete(step())

    async def _come_to_rest(self) -> None:
        self.raising, self.in_body = None, "nothing"
        self.moods.clear()
        self.agent.cancel()
        await settle(self.agent)
        if self.agent.status != "disposed":
            self.sent.append(self.agent.send([Text("still there?")]))
            await settle(self.agent)
            assert history(self.agent)[-2:] == [("user", "still there?"), ("assistant", "answer")]

    async def _live(self) -> None:
        async with open_rig() as rig:
            rig.bus.on(m.StatusChanged, lambda moment: self.statuses.append(moment.status))
            rig.bus.on(m.Discarded, lambda moment: self.dropped.extend(moment.message_ids))
            agent = await rig.agent()
            agent.session.log.observe(self._check)
            agent.session.log.observe(self._trouble)
            for kind in TROUBLESOME:
                if issubclass(kind, m.Checkpoint):
                    rig.bus.on(kind, self._awaited_trouble)
                elif issubclass(kind, m.Moment):
                    rig.bus.on(kind, self._trouble)
            rig.model.at_point = self._answer
            rig.worker.body = self._body
            self.rig, self.agent = rig, agent
            self.ready.set()
            await self.leave.wait()

    async def _answer(self, where: str) -> None:
        if where == "call":
            self.rig.model.entries.clear()
            self.rig.model.entries.append(ANSWERS[self.moods.popleft() if self.moods else "text"])
        await checkpoint()

    def _check(self, fact: f.LoggedFact) -> None:
        try:
            self.oracle.check(fact)
        except AssertionError as error:
            self.broken.append(error)

    def _trouble(self, thing: object) -> None:
        if self.raising is type(thing):
            self.raising = None
            raise Trouble

    async def _awaited_trouble(self, thing: object) -> None:
        self._trouble(thing)

    async def _body(self, ctx: ToolContext, job: str) -> None:
        await checkpoint()
        deed, self.in_body = self.in_body, "nothing"
        if deed == "raise":
            raise Trouble
        self.do(deed)
        await checkpoint()


SETTINGS = settings(stateful_step_count=25, deadline=None, suppress_health_check=[*HealthCheck])


def test_no_order_of_events_leaves_a_broken_log_or_a_stuck_agent() -> None:
    """Our promise: a sample of what the sweep below does, the same in every run."""
    run_state_machine_as_test(Anything, settings=settings(SETTINGS, max_examples=250, derandomize=True))


@pytest.mark.sweep
def test_no_longer_order_of_events_does_either() -> None:
    """Our promise: the same, longer, further, and different each time."""
    run_state_machine_as_test(
        Anything, settings=settings(SETTINGS, max_examples=1500, stateful_step_count=50)
    )
