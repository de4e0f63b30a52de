"""What of an answer is left when its turn is stopped in the middle of it, or right behind it."""

from collections.abc import Awaitable

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.chunks import Chunk, Finish, TextDelta
from agent_loop.errors import ProviderError
from agent_loop.events.bus import Next
from agent_loop.events.facts import AssistantChunk, AssistantMessage, StepEnd
from agent_loop.events.moments import Checkpoint, StepEnded
from agent_loop.events.waterfalls import REQUEST_ERROR, STEP_RESULT, FailedRequest, Recovery, StepResult
from agent_loop.messages import Content, Reasoning, Text
from tests.doubles.loop_rig import ask, at, ends, history, of_type, open_rig, reason, settle
from tests.doubles.model import answer, call, said, text, thought


@pytest.mark.parametrize(
    ("chunks", "kept"),
    [
        ([*thought("hm"), *said("so fa", 1)[:4]], (Reasoning("hm"), Text("so "))),
        (thought("hm")[:3], (Reasoning("hm"),)),
        ([*said("I'll"), *call("c1")[:2]], (Text("I'll"),)),
        (call("c1"), None),
        (said(" \n"), None),
        ([], None),
    ],
)
async def test_what_was_read_of_a_cancelled_answer_is_kept(
    chunks: list[Chunk], kept: tuple[Content, ...] | None
) -> None:
    """Loop specification 8.1.15: text and thought, no half calls, no blank message."""
    async with open_rig([*chunks, Finish("stop")]) as rig:
        agent = await rig.agent()

        async def stops_last(where: str) -> None:
            if len(of_type(agent, AssistantChunk)) == len(chunks):
                agent.cancel()
            await checkpoint()

        rig.model.at_point = stops_last
        await ask(agent)

        messages = [(fact.content, fact.interrupted) for fact in of_type(agent, AssistantMessage)]
        assert messages == ([(kept, True)] if kept else [])
        assert ends(agent) == ["aborted"]


async def test_a_cancel_after_the_last_chunk_still_cancels() -> None:
    """Loop specification 4.48, a gap cured: the turn does not end as if nothing had been."""
    async with open_rig([*said("all"), Finish("stop")]) as rig:
        agent = await rig.agent()
        at(agent, AssistantChunk, lambda _: agent.abort("late"), nth=6)

        await ask(agent)

        assert (reason(agent).text, history(agent)[1:]) == ("late", [("assistant", "all")])


async def test_what_was_read_is_kept_although_a_step_result_listener_was_at_work() -> None:
    """Loop specification 9.41: the person has seen the whole text."""

    async def slow(
        value: StepResult, next: Next[StepResult, Awaitable[AssistantMessage]]
    ) -> AssistantMessage:
        agent.cancel()
        await checkpoint()
        return await next(value)

    async with open_rig(text("all")) as rig:
        agent = await rig.agent()
        rig.bus.around(STEP_RESULT, slow)

        await ask(agent)

        (message,) = of_type(agent, AssistantMessage)
        assert (message.content, message.interrupted) == ((Text("all"),), True)


async def test_once_the_token_fired_no_chunk_is_logged() -> None:
    """Contract 1: also when the provider goes on without a pause."""

    async def never_waits(_: str) -> None:
        """Give the event loop no chance to deliver a cancellation."""

    async with open_rig(text("abc")) as rig:
        agent = await rig.agent()
        rig.model.at_point = never_waits
        at(agent, AssistantChunk, lambda _: agent.cancel(), nth=2)

        await ask(agent)

        assert [fact.chunk for fact in of_type(agent, AssistantChunk)][1:] == [TextDelta(0, "a")]


async def test_a_cancel_during_recovery_commits_nothing_and_is_not_retried() -> None:
    """Loop specification 8.1.19."""

    async def cancels(value: FailedRequest, next: Next[FailedRequest, Awaitable[Recovery]]) -> Recovery:
        agent.cancel("enough")
        return "retry"

    async with open_rig([*said("half")[:3], ProviderError("server", "down")]) as rig:
        agent = await rig.agent()
        rig.bus.around(REQUEST_ERROR, cancels)

        await ask(agent)

        assert (len(rig.model.requests), of_type(agent, AssistantMessage)) == (1, [])
        assert ends(agent) == ["aborted"]


async def test_a_cancel_at_the_end_of_a_refused_answer_is_a_cancel() -> None:
    """Loop specification 4.2.18: disposed and aborted beat every other reason."""
    async with open_rig(answer(*said("no"), finish="refusal")) as rig:
        agent = await rig.agent()
        at(agent, StepEnd, lambda _: agent.cancel())

        await ask(agent)

        assert ends(agent) == ["aborted"]


async def test_a_cancel_overrides_the_limit_of_tokens() -> None:
    """Loop specification 4.4.35."""
    async with open_rig(answer(*said("much"), finish="max-tokens")) as rig:
        agent = await rig.agent()
        rig.once(StepEnded, lambda _: agent.cancel())

        await ask(agent)

        assert ends(agent) == ["aborted"]


async def test_a_cancel_in_the_tick_in_which_the_request_may_go_asks_no_model() -> None:
    """Contract 6: the token is asked right before every effect."""
    recording, recorded = anyio.Event(), anyio.Event()

    async def slow(_: Checkpoint) -> None:
        recording.set()
        await recorded.wait()

    async with open_rig() as rig:
        agent = await rig.agent()
        rig.bus.on(Checkpoint, slow)
        agent.send([Text("hi")])
        await recording.wait()

        recorded.set()
        agent.cancel()
        await settle(agent)

        assert (rig.model.requests, ends(agent)) == ([], ["aborted"])
