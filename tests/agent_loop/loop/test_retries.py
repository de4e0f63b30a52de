"""Failed requests, and who decides that one is tried again."""

from collections.abc import Awaitable

import pytest

from agent_loop.chunks import Finish
from agent_loop.errors import ProviderError
from agent_loop.events.bus import Next
from agent_loop.events.facts import (
    AssistantChunk,
    AssistantMessage,
    StepStart,
)
from agent_loop.events.waterfalls import (
    REQUEST_ERROR,
    FailedRequest,
    Recovery,
)
from tests.doubles.loop_rig import ask, ends, history, of_type, open_rig, reason
from tests.doubles.model import Entry, answer, said, text

RecoveryNext = Next[FailedRequest, Awaitable[Recovery]]
BUSY = ProviderError("overloaded", "too much to do")


async def retries(value: FailedRequest, next: RecoveryNext) -> Recovery:
    """Try everything again, at most twice."""
    return "retry" if value.attempt < 3 else "fail"


async def test_a_failed_request_may_be_tried_again_within_its_step() -> None:
    """Loop specification 6.46: chunks of failed attempts stay logged and derive nothing."""
    seen: list[FailedRequest] = []

    async def recovers(value: FailedRequest, next: RecoveryNext) -> Recovery:
        seen.append(value)
        assert await next(value) == "fail"
        return "retry"

    async with open_rig([*said("half")[:3], BUSY], [BUSY], text("whole")) as rig:
        agent = await rig.agent()
        rig.bus.around(REQUEST_ERROR, recovers)
        await ask(agent)

        assert seen == [
            FailedRequest("s1", 1, 1, 1, BUSY, shown=True),
            FailedRequest("s1", 1, 1, 2, BUSY, shown=False),
        ]
        assert sorted({fact.attempt for fact in of_type(agent, AssistantChunk)}) == [1, 3]
        assert [fact.attempt for fact in of_type(agent, AssistantMessage)] == [3]
        assert [fact.step for fact in of_type(agent, StepStart)] == [1]
        assert (ends(agent), history(agent)[1:]) == (["completed"], [("assistant", "whole")])


@pytest.mark.parametrize(
    "entry",
    [said("cut"), answer(*said("cut"), finish="aborted"), [*said("cut"), Finish("error", "late", "server")]],
)
async def test_an_answer_that_broke_off_may_be_tried_again(entry: Entry) -> None:
    """Contract 7: a failure told at the stream's end is one like any other, and says what was shown."""
    shown: list[bool] = []

    async def recovers(value: FailedRequest, next: RecoveryNext) -> Recovery:
        shown.append(value.shown)
        return "retry"

    async with open_rig(entry, text("whole")) as rig:
        agent = await rig.agent()
        rig.bus.around(REQUEST_ERROR, recovers)
        await ask(agent)

        assert (shown, history(agent)[1:]) == ([True], [("assistant", "whole")])


async def test_retrying_ends_when_the_listener_says_so() -> None:
    """Contract 7: `agent/request-error` decides; the error that counts is the last."""
    last = ProviderError("quota", "nothing left")

    async with open_rig([BUSY], [BUSY], [last]) as rig:
        agent = await rig.agent()
        rig.bus.around(REQUEST_ERROR, retries)
        await ask(agent)

        assert (len(rig.model.requests), reason(agent).error_kind) == (3, "quota")


async def test_a_bug_is_not_tried_again() -> None:
    """Loop specification 6.45: only a provider's failure is; our own stays an exception."""
    async with open_rig([RuntimeError("bug")]) as rig:
        agent = await rig.agent()
        rig.bus.around(REQUEST_ERROR, retries)
        await ask(agent)

        assert (len(rig.model.requests), ends(agent)) == (1, ["error"])
