"""One step: a model request, its answer, and the tools the answer asks for.

Owns what of an answer is logged and when a failed request is tried again. When to take another step
belongs to `turn`.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Final

import anyio.lowlevel

from agent_loop.agent.cancel_token import TurnCancelled
from agent_loop.chunks import Usage
from agent_loop.errors import ProviderError, in_words
from agent_loop.events.facts import AssistantChunk, AssistantMessage, UsageRecorded
from agent_loop.events.moments import Checkpoint, Pace, StreamChunk
from agent_loop.events.waterfalls import REQUEST_ERROR, STEP_RESULT, FailedRequest, Recovery, StepResult
from agent_loop.llm.collect import Collector
from agent_loop.llm.models import ModelInfo, charged
from agent_loop.llm.provider import REQUEST, AgentRequest, ModelRequest, ToolSchema
from agent_loop.loop.request import build_request, require_model
from agent_loop.loop.tool_calls import StepPlace, ToolBatch
from agent_loop.messages import Content, ToolCallBlock
from agent_loop.prompt.system_prompt import PromptContext
from agent_loop.record import record, replace

log = logging.getLogger(__name__)

PACE_EVERY: Final = 64
"""Chunks between two pauses: more is unfair to other sessions and lengthens the tail after a cancel."""


@record
class StepOutcome:
    """How a step went, for whoever decides on the next."""

    had_tool_calls: bool = False
    max_tokens: bool = False
    refused: bool = False


async def run_step(place: StepPlace) -> StepOutcome:
    """Run one step to its end.

    Raises:
        TurnCancelled: The token fired.
        ProviderError: The model call failed for good.
        Exception: A middleware or a log observer raised.
    """
    with place.token.scope():
        request = await _request(place)

    attempt = 1
    while True:
        try:
            answer = await _ask(place, request, attempt)
        except ProviderError as error:
            if await _recovery(place, error, attempt) == "fail":
                raise
            attempt += 1
            continue
        return await _act(place, answer, attempt, request.info)


async def _request(place: StepPlace) -> ModelRequest:
    agent, services = place.agent, place.services
    session = agent.session
    context = PromptContext(session.id, session.header.cwd, agent.options.system_prompt)
    system = await services.prompt.text(context)
    options = agent.options
    specs = services.tools.schemas(session.id) if options.info.tools else ()
    request = build_request(
        options,
        system=system,
        messages=session.messages(),
        tools=[ToolSchema(spec.name, spec.description, spec.parameters) for spec in specs],
        session_id=session.id,
    )

    async def core(value: AgentRequest) -> ModelRequest:
        return value.request

    value = AgentRequest(agent.id, place.turn, place.step, request)
    request = await services.bus.run(REQUEST, value, core)
    require_model(request)
    return request


async def _ask(place: StepPlace, request: ModelRequest, attempt: int) -> Collector:
    """One attempt; every chunk of it is logged before anything else is done with it."""
    bus, token, log = place.services.bus, place.token, place.agent.session.log
    turn, step, agent_id = place.turn, place.step, place.agent.id
    answer = Collector(log.call_ids)
    add, append = answer.add, log.append
    seen, watched = 0, bus.listens(StreamChunk)
    try:
        with token.scope():
            await _checkpoint(place)
            token.raise_if_fired()
            # Every provider is a generator, though a middleware may only promise an iterator.
            async with aclosing(place.services.llm.stream(request)) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    if token.cause is not None:
                        break
                    append(AssistantChunk(turn, step, attempt, chunk))
                    add(chunk)
                    if watched:
                        bus.emit(StreamChunk(agent_id, turn, step, chunk))
                    seen += 1
                    if seen % PACE_EVERY == 0:
                        await _pace(place)
                        watched = bus.listens(StreamChunk)
        _require_answer(answer)
    except TurnCancelled:
        _keep_prefix(place, answer, attempt)
        raise
    except ProviderError as error:
        error.shown = answer.shown
        error.provider = error.provider or request.provider
        # It is paid for, whatever came of it.
        _log_usage(place, answer.usage, request.info)
        raise
    return answer


async def _checkpoint(place: StepPlace) -> None:
    """Store what led to the request. On a failing disk the session goes on in memory; a tool would not."""
    try:
        await place.services.bus.parallel(Checkpoint(place.agent.session.id, durable=False))
    except Exception as error:
        log.warning(
            "session %s is not stored before its request: %s", place.agent.session.id, in_words(error)
        )


def _keep_prefix(place: StepPlace, answer: Collector, attempt: int) -> None:
    """Log what the person has read of an answer that was stopped: they will refer to it."""
    prefix = answer.visible_prefix()
    if prefix:
        place.agent.session.log.append(
            AssistantMessage(place.turn, place.step, attempt, prefix, interrupted=True)
        )


async def _pace(place: StepPlace) -> None:
    if place.services.bus.listens(Pace):
        await place.services.bus.parallel(Pace(place.agent.session.id))
    else:
        await anyio.lowlevel.checkpoint()


def _require_answer(answer: Collector) -> None:
    """Raises ProviderError when the stream's end says, or shows, that there is no whole answer."""
    finish = answer.finish
    if finish is None:
        raise ProviderError("transport", "the model's answer was cut off before its end")
    if finish.kind == "error":
        raise ProviderError(finish.error_kind, finish.message)
    if finish.kind == "aborted":
        raise ProviderError("unknown", finish.message or "the provider stopped its answer")
    if finish.kind in ("stop", "tool-calls") and not answer.content() and not _was_written(answer.usage):
        raise ProviderError("empty", "")


def _was_written(usage: Usage | None) -> bool:
    """Whether the provider counts tokens for an answer without content: then silence was the answer.

    A model may well say nothing after its last tool; an overloaded provider's empty answer counts nothing.
    """
    return usage is not None and usage.output_tokens + usage.reasoning_tokens > 0


async def _recovery(place: StepPlace, error: ProviderError, attempt: int) -> Recovery:
    async def core(_: FailedRequest) -> Recovery:
        return "fail"

    failed = FailedRequest(place.agent.id, place.turn, place.step, attempt, error, error.shown)
    with place.token.scope():
        return await place.services.bus.run(REQUEST_ERROR, failed, core)


async def _act(place: StepPlace, answer: Collector, attempt: int, info: ModelInfo) -> StepOutcome:
    """Log the answer and do what it asks for."""
    kind = answer.finish.kind if answer.finish is not None else "stop"
    whole = kind not in ("max-tokens", "refusal")
    content = answer.content() if whole else answer.without_tool_calls()
    try:
        message = await _step_result(place, AssistantMessage(place.turn, place.step, attempt, content))
    except TurnCancelled:
        _keep_prefix(place, answer, attempt)
        raise
    if not whole:
        # A call cut off at the limit must not run, wherever it came from.
        message = replace(message, content=_without_calls(message.content))

    if not whole:
        if message.content:
            place.agent.session.log.append(message)
        _log_usage(place, answer.usage, info)
        return StepOutcome(max_tokens=kind == "max-tokens", refused=kind == "refusal")

    calls = [block for block in message.content if isinstance(block, ToolCallBlock)]
    if not calls:
        place.agent.session.log.append(message)
        _log_usage(place, answer.usage, info)
        place.token.raise_if_fired()
        return StepOutcome()

    await _run_tools(place, message, calls, partial(_log_usage, place, answer.usage, info))
    return StepOutcome(had_tool_calls=True)


async def _step_result(place: StepPlace, message: AssistantMessage) -> AssistantMessage:
    async def core(value: StepResult) -> AssistantMessage:
        return value.message

    with place.token.scope():
        return await place.services.bus.run(STEP_RESULT, StepResult(place.agent.id, message), core)


async def _run_tools(
    place: StepPlace,
    message: AssistantMessage,
    calls: Sequence[ToolCallBlock],
    log_usage: Callable[[], None],
) -> None:
    batch = ToolBatch(place, calls)
    place.agent.hold_context()
    try:
        try:
            place.agent.session.log.append(message)
            log_usage()
            await batch.run()
        finally:
            batch.close()
    finally:
        place.agent.release_context()
    place.token.raise_if_fired()


def _log_usage(place: StepPlace, usage: Usage | None, info: ModelInfo) -> None:
    """Log what a call used, by what was known of the model that was asked: it may be another by now."""
    if usage is None:
        return
    log = place.agent.session.log
    cost = None if info.price is None else charged(info.price, usage, log.cost)
    log.append(UsageRecorded(place.turn, place.step, usage, info.context_window, cost))


def _without_calls(content: tuple[Content, ...]) -> tuple[Content, ...]:
    return tuple(block for block in content if not isinstance(block, ToolCallBlock))
