"""The projector: facts to `session/update`s, the same for live and replay. Pure.

replay = project(join_runs(facts)). Message text is never cut, only split; tool output is bounded.
Source: https://agentclientprotocol.com/protocol/v1/prompt-turn, /tool-calls
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from acp_server.codec import terminal_out
from acp_server.codec.bounds import FIELD_LIMIT_BYTES, pieces
from acp_server.codec.card_out import STATUS, card_out, content_out, output_out, text_out
from agent_loop import (
    AssistantChunk,
    AssistantRun,
    Card,
    CardOutput,
    Content,
    Image,
    LoggedFact,
    LogRow,
    PlanChanged,
    ReasoningDelta,
    RequestRetried,
    SessionMode,
    SessionTitle,
    SteeringMessage,
    Text,
    TextDelta,
    ToolCall,
    ToolOutput,
    ToolResult,
    ToolStarted,
    UsageRecorded,
    UserMessage,
    context_of,
)

Update = dict[str, Any]
_Message = tuple[int, int, int, type[TextDelta] | type[ReasoningDelta]]
"""Turn, step, attempt and kind: what the deltas of one message have in common."""

SURELY_SHORT: Final = FIELD_LIMIT_BYTES // 4
"""Characters that fit the field limit whatever they are."""

STOPPED: Final = "Stopped before it finished."


@lru_cache(maxsize=64)
def message_id(turn: int, step: int, attempt: int, kind: str) -> str:
    """The id of one of the assistant's messages: the same live, on replay and after a restart."""
    return f"t{turn}.s{step}.a{attempt}.{kind}"


def chunk_updates(fact: AssistantChunk) -> list[Update]:
    """The updates of one chunk: one for text or reasoning, more only for a delta over the field limit."""
    chunk = fact.chunk
    if type(chunk) is TextDelta:
        kind, suffix = "agent_message_chunk", "message"
    elif type(chunk) is ReasoningDelta:
        kind, suffix = "agent_thought_chunk", "thought"
    else:
        return []
    message = message_id(fact.turn, fact.step, fact.attempt, suffix)
    if 0 < len(chunk.text) <= SURELY_SHORT:
        return [
            {"sessionUpdate": kind, "content": {"type": "text", "text": chunk.text}, "messageId": message}
        ]
    return [
        {"sessionUpdate": kind, "content": {"type": "text", "text": piece}, "messageId": message}
        for piece in pieces(chunk.text)
    ]


def updates_of(
    fact: LoggedFact, *, replay: bool = False, drawn: Mapping[str, str] | None = None
) -> list[Update]:
    """The updates a fact stands for; what the person typed is told on replay only.

    Args:
        drawn: For an editor that draws commands as terminals, what each shows by now; by the call's id.
    """
    match fact:
        case AssistantChunk():
            return chunk_updates(fact)
        case ToolCall(call_id=call_id, card=card) if card is not None:
            fields = card_out(card)
            if drawn is not None and card.terminal is not None:
                fields = terminal_out.opened(call_id, fields, card.terminal)
            return [{"sessionUpdate": "tool_call", "toolCallId": call_id, "name": fact.name, **fields}]
        case ToolStarted(call_id=call_id):
            return [{"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "in_progress"}]
        case ToolResult(call_id=call_id, card=card) if card is not None:
            if fact.outcome == "interrupted":
                return [stopped_call(call_id)]
            if drawn is not None and card.terminal is not None and (output := output_of(card)) is not None:
                return _finished_terminal(call_id, fact, drawn.get(call_id, ""), output)
            return [_finished_call(call_id, fact)]
        case PlanChanged(entries=entries):
            told = [{"content": it.content, "priority": it.priority, "status": it.status} for it in entries]
            return [{"sessionUpdate": "plan", "entries": told}]
        case UsageRecorded(window=window) if window is not None:
            return [usage_update(fact, window)]
        case RequestRetried():
            return [
                {
                    "sessionUpdate": "agent_thought_chunk",
                    "content": {"type": "text", "text": piece},
                    "messageId": message_id(fact.turn, fact.step, fact.attempt, "retry"),
                }
                for piece in pieces(retry_words(fact))
            ]
        case SessionTitle(title=title):
            updated_at = datetime.fromtimestamp(fact.time / 1000, UTC).isoformat(timespec="milliseconds")
            return [{"sessionUpdate": "session_info_update", "title": title, "updatedAt": updated_at}]
        case SessionMode(mode=mode):
            return [{"sessionUpdate": "current_mode_update", "currentModeId": mode}]
        case UserMessage(id=user_message_id) | SteeringMessage(id=user_message_id) if replay:
            return [
                {"sessionUpdate": "user_message_chunk", "content": content, "messageId": user_message_id}
                for block in fact.content
                for content in _said(block)
            ]
        case _:
            return []


def _said(block: Content) -> list[dict[str, Any]]:
    """What a person said, as they said it, but for the size of a piece."""
    match block:
        case Text(text):
            return [{"type": "text", "text": piece} for piece in pieces(text)]
        case Image(data, mime_type):
            return [{"type": "image", "data": data, "mimeType": mime_type}]
        case _:
            return []


def usage_update(fact: UsageRecorded, window: int) -> Update:
    """How full the model's context is, and what the session has cost so far."""
    update: Update = {"sessionUpdate": "usage_update", "used": context_of(fact.usage), "size": window}
    if fact.cost is not None:
        update["cost"] = {"amount": fact.cost.total, "currency": fact.cost.currency}
    return update


def retry_words(fact: RequestRetried) -> str:
    """Why an answer begins anew, for the person who sees it do so."""
    wait = f" in {round(fact.delay_ms / 1000)} s" if fact.delay_ms >= 1000 else ""
    void = " What the model said of this answer so far does not count." if fact.shown else ""
    return f"{fact.message.rstrip('.')}. Trying again{wait}.{void}"


def stopped_call(call_id: str) -> Update:
    """How a call ends that its turn's end cut off: the same words live and on replay."""
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": STATUS["cancelled"],
        "content": [text_out(STOPPED)],
    }


def output_update(moment: ToolOutput) -> Update:
    """All a running call has printed so far; live only."""
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": moment.call_id,
        "content": [output_out(moment.text, moment.truncated)],
    }


def join_runs(rows: Iterable[LogRow]) -> Iterator[LoggedFact]:
    """A log's facts with neighbouring deltas of one message joined, up to the field limit each."""
    message: _Message | None = None
    held: list[str] = []
    size = 0
    for row in rows:
        match row:
            case AssistantRun():
                its, texts = (row.turn, row.step, row.attempt, row.delta), row.texts
            case AssistantChunk(chunk=TextDelta() | ReasoningDelta() as chunk):
                its, texts = (row.turn, row.step, row.attempt, type(chunk)), [chunk.text]
            case _:
                if message is not None:
                    yield _joined(message, held)
                    message, held, size = None, [], 0
                yield row
                continue
        for text in texts:
            if message is not None and (size >= FIELD_LIMIT_BYTES or message != its):
                yield _joined(message, held)
                held, size = [], 0
            message = its
            held.append(text)
            size += len(text)
    if message is not None:
        yield _joined(message, held)


def _joined(message: _Message, texts: list[str]) -> AssistantChunk:
    turn, step, attempt, delta = message
    return AssistantChunk(turn, step, attempt, delta(0, "".join(texts)))


def _finished_call(call_id: str, fact: ToolResult) -> Update:
    card = fact.card
    assert card is not None
    update: Update = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": call_id,
        "status": STATUS[card.status],
    }
    if card.body:
        update["content"] = content_out(card.body)
    return {**update, **_exit_out(fact)}


def _exit_out(fact: ToolResult) -> Update:
    """How a command ended, for an editor's programs; a person reads it in the card."""
    how = fact.exit
    if how is None:
        return {}
    return {"rawOutput": {"exitCode": how.code, "signal": how.signal, "timedOut": how.timed_out}}


def output_of(card: Card) -> str | None:
    """What its command printed; None when it shows no output."""
    return next((item.text for item in card.body if isinstance(item, CardOutput)), None)


def _finished_terminal(call_id: str, fact: ToolResult, shown: str, output: str) -> list[Update]:
    assert fact.card is not None
    call: Update = {"sessionUpdate": "tool_call_update", "toolCallId": call_id}
    *before, last = terminal_out.ended(call_id, shown, output, fact.exit)
    ended = {"status": STATUS[fact.card.status], **last, **_exit_out(fact)}
    return [*({**call, **fields} for fields in before), {**call, **ended}]
