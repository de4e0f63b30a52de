"""The turns that are swept: for each, what the model answers and what the tool does meanwhile."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio.lowlevel

from agent_loop.agent.agent import ReactLoopAgent
from agent_loop.chunks import Finish
from agent_loop.errors import ProviderError
from agent_loop.events.bus import Next
from agent_loop.events.waterfalls import REQUEST_ERROR, FailedRequest, Recovery
from agent_loop.messages import Text
from agent_loop.tools.tool import ToolContext
from tests.doubles.loop_rig import Rig
from tests.doubles.model import Entry, answer, calls, said, text, thought

SAFE = '{"job": "a", "safe": true}'
LATE = ProviderError("overloaded", "too much to do")


async def nothing(ctx: ToolContext, job: str) -> None:
    """A body that does nothing."""


@dataclass(frozen=True)
class Scenario:
    """One scripted turn.

    Attributes:
        prepare: Gives the rig what else the turn needs.
    """

    name: str
    entries: Sequence[Entry]
    prepare: Callable[[Rig, ReactLoopAgent], None] = field(default=lambda rig, agent: None)


def steered(rig: Rig, agent: ReactLoopAgent) -> None:
    """The tool's body steers twice."""

    async def body(ctx: ToolContext, job: str) -> None:
        agent.steer([Text("first")])
        await anyio.lowlevel.checkpoint()
        agent.steer([Text("second")])

    rig.worker.body = body


def injected(rig: Rig, agent: ReactLoopAgent) -> None:
    """The tool's body adds context."""

    async def body(ctx: ToolContext, job: str) -> None:
        agent.inject([Text(f"context of {job}")], {"kind": "plugin", "plugin": "p"})
        await anyio.lowlevel.checkpoint()

    rig.worker.body = body


def printing(rig: Rig, agent: ReactLoopAgent) -> None:
    """The tool's body shows output."""

    async def body(ctx: ToolContext, job: str) -> None:
        ctx.output("so far", False)

    rig.worker.body = body


def retried(rig: Rig, agent: ReactLoopAgent) -> None:
    """A failed request is tried once more."""

    async def again(value: FailedRequest, next: Next[FailedRequest, object]) -> Recovery:
        await anyio.lowlevel.checkpoint()
        return "retry" if value.attempt == 1 else "fail"

    rig.bus.around(REQUEST_ERROR, again)


SCENARIOS = (
    Scenario("text", [text("abcdefg")]),
    Scenario("thinking and text", [answer(*thought("hmm"), *said("so", 1))]),
    Scenario("one tool", [calls(("c1", '{"effect": "write"}')), text("did it")], printing),
    Scenario("parallel tools", [calls(("c1", SAFE), ("c2", SAFE), ("c3", '{"job": "b"}')), text("ok")]),
    Scenario("two steps", [calls(("c", "{}")), calls(("c", "{}"), ("d", "{bad")), text("ok")]),
    Scenario("steering", [calls(("c1", "{}")), text("heard")], steered),
    Scenario("inject during tools", [calls(("c1", SAFE), ("c2", SAFE)), text("seen")], injected),
    Scenario("provider failure", [[*said("half")[:3], LATE]]),
    Scenario("retry", [[*said("half")[:3], LATE], text("whole")], retried),
    Scenario("cut at the limit", [answer(*said("much"), *calls(("c1", "{}"))[:2], finish="max-tokens")]),
    Scenario("refusal", [answer(*said("no"), finish="refusal")]),
    Scenario("empty answer", [[Finish("stop")]]),
)
