"""How an answer can end, and what of it is logged, derived and acted on."""

from collections.abc import Awaitable
from dataclasses import replace

import pytest

from agent_loop.chunks import Chunk, Finish, Usage, UsageChunk
from agent_loop.events.bus import Next
from agent_loop.events.facts import (
    AssistantMessage,
    EndReason,
    ToolCall,
    ToolResult,
    UsageRecorded,
)
from agent_loop.events.waterfalls import (
    STEP_RESULT,
    TURN_CONTINUATION,
    Continuation,
    StepResult,
)
from agent_loop.messages import Content, Text, ToolCallBlock
from tests.doubles.loop_rig import ask, ends, history, of_type, open_rig, reason, types
from tests.doubles.model import USAGE, answer, call, calls, said, text, thought

AnswerNext = Next[StepResult, Awaitable[AssistantMessage]]


@pytest.mark.parametrize(
    ("chunks", "kind", "message"),
    [
        (said("half"), "transport", "the model's answer was cut off before its end"),
        (answer(*said("half"), finish="aborted"), "unknown", "the provider stopped its answer"),
        ([Finish("error", "too fast", "rate_limit")], "rate_limit", "too fast"),
        ([Finish("error")], "unknown", "the model failed without saying why"),
        ([Finish("stop")], "empty", "the model gave an empty answer"),
        ([UsageChunk(Usage(input_tokens=5)), Finish("stop")], "empty", "the model gave an empty answer"),
        ([Finish("tool-calls")], "empty", "the model gave an empty answer"),
    ],
)
async def test_an_answer_that_is_none_fails_the_turn(chunks: list[Chunk], kind: str, message: str) -> None:
    """Loop specification 8.3.22 to 24 and 9.47, 48: a raise and a finish; a cut stream is transport.

    Contract 5: the person reads whose failure it is, also when it is the loop that found it.
    """
    async with open_rig(chunks) as rig:
        agent = await rig.agent()
        await ask(agent)

        end = reason(agent)
        assert (end.kind, end.error_kind, end.message) == ("error", kind, message)
        assert end.data == {"provider": "script"}
        assert of_type(agent, AssistantMessage) == []
        assert history(agent) == [("user", "hi")]


@pytest.mark.parametrize("usage", [Usage(output_tokens=1), Usage(reasoning_tokens=1)])
async def test_silence_the_provider_counts_tokens_for_is_an_answer(usage: Usage) -> None:
    """Our promise: a model may say nothing after its last tool."""
    async with open_rig(calls(("c1", "{}")), [UsageChunk(usage), Finish("stop")]) as rig:
        agent = await rig.agent()
        await ask(agent)

        assert ends(agent) == ["completed"]
        assert [fact.content for fact in of_type(agent, AssistantMessage)][1:] == [()]
        assert [role for role, _ in history(agent)] == ["user", "assistant", "user"]


async def test_a_thought_alone_is_an_answer() -> None:
    """Our promise: reasoning is content."""
    async with open_rig(answer(*thought("hm"))) as rig:
        agent = await rig.agent()
        await ask(agent)

        assert (ends(agent), types(agent.session.log)[4]) == (["completed"], "assistant/message")


async def test_an_answer_without_usage_has_no_usage_fact() -> None:
    """Loop specification 4.2.14: usage if any."""
    async with open_rig([*said("a"), Finish("stop")]) as rig:
        agent = await rig.agent()
        await ask(agent)

        assert (ends(agent), of_type(agent, UsageRecorded)) == (["completed"], [])


@pytest.mark.parametrize(
    ("chunks", "kept"),
    [
        (said("much"), [(Text("much"),)]),
        ([*said("much"), *call("c1")], [(Text("much"),)]),
        ([*said("much"), *call("c1")[:2]], [(Text("much"),)]),
        (call("c1"), []),
        ([], []),
    ],
)
async def test_an_answer_cut_at_the_limit_runs_no_tool(
    chunks: list[Chunk], kept: list[tuple[Content, ...]]
) -> None:
    """Loop specification 8.2.13, 16, 17 and 9.52: the text is kept, a call is not even logged."""
    async with open_rig(answer(*chunks, finish="max-tokens")) as rig:
        agent = await rig.agent()
        await ask(agent)

        assert (ends(agent), len(rig.model.requests)) == (["max-tokens"], 1)
        assert [fact.content for fact in of_type(agent, AssistantMessage)] == kept
        assert (of_type(agent, ToolCall), rig.worker.began) == ([], [])
        assert of_type(agent, UsageRecorded) == [UsageRecorded(1, 1, USAGE)]


async def test_a_listener_cannot_smuggle_a_call_into_an_answer_cut_at_the_limit() -> None:
    """Loop specification 4.2.13: stripped before and after `agent/step-result`."""
    seen: list[tuple[Content, ...]] = []

    async def adds(value: StepResult, next: AnswerNext) -> AssistantMessage:
        seen.append(value.message.content)
        return replace(value.message, content=(*value.message.content, ToolCallBlock("x", "work", "{}")))

    async with open_rig(answer(*said("much"), *call("c1"), finish="max-tokens")) as rig:
        agent = await rig.agent()
        rig.bus.around(STEP_RESULT, adds)
        await ask(agent)

        assert seen == [(Text("much"),)]
        assert (history(agent)[1:], rig.worker.began) == ([("assistant", "much")], [])


async def test_the_limit_is_remembered_for_the_turn_and_forgotten_with_it() -> None:
    """Loop specification 8.2.14 and 15: sticky within the turn, gone in the next."""

    async def once_more(value: Continuation, next: Next[Continuation, Awaitable[bool]]) -> bool:
        return value.turn == 1 and value.step == 1

    async with open_rig(answer(*said("first"), finish="max-tokens"), text("rest"), text("new")) as rig:
        agent = await rig.agent()
        rig.bus.around(TURN_CONTINUATION, once_more)
        await ask(agent)
        await ask(agent)

        assert ends(agent) == ["max-tokens", "completed"]
        assert len(rig.model.requests[1].messages) == 2


async def test_a_refused_prompt_is_dropped_from_later_requests() -> None:
    """ACP, prompt turn, stop reason refusal; contract 1: history drops all messages of that turn."""
    asked: list[int] = []

    async def votes(value: Continuation, next: Next[Continuation, Awaitable[bool]]) -> bool:
        asked.append(value.turn)
        return await next(value)

    async with open_rig(answer(*said("no"), *call("c1"), finish="refusal"), text("fine")) as rig:
        agent = await rig.agent()
        rig.bus.around(TURN_CONTINUATION, votes)
        await ask(agent, "bad")
        assert (reason(agent), rig.worker.began, asked) == (EndReason("refusal"), [], [])

        await ask(agent, "good")

        assert len(rig.model.requests[1].messages) == 1
        assert history(agent) == [("user", "good"), ("assistant", "fine")]


async def test_what_a_listener_makes_of_an_answer_is_what_counts() -> None:
    """Loop specification 8.3.1: logged, derived and acted on; the original is nowhere."""

    async def rewrites(value: StepResult, next: AnswerNext) -> AssistantMessage:
        message = await next(value)
        if message.step > 1:
            return message
        return replace(message, content=(Text("mine"), ToolCallBlock("x", "work", '{"job": "added"}')))

    async with open_rig(text("original"), text("done")) as rig:
        agent = await rig.agent()
        rig.bus.around(STEP_RESULT, rewrites)
        await ask(agent)

        assert history(agent)[1:] == [
            ("assistant", "mine[x]"),
            ("user", "x: did added"),
            ("assistant", "done"),
        ]
        assert rig.worker.began == ["x"]


async def test_a_call_id_is_used_once_in_a_session() -> None:
    """Contract 1: the first use keeps the provider's text, a repeat gets a suffix; log and history agree."""
    async with open_rig(calls(("c", "{}"), ("c", "{}")), calls(("c", "{}")), text("a")) as rig:
        agent = await rig.agent()
        await ask(agent)

        ids = ["c", "c-2", "c-3"]
        assert [fact.call_id for fact in of_type(agent, ToolCall)] == ids
        assert [fact.call_id for fact in of_type(agent, ToolResult)] == ids
        assert rig.worker.began == ids
