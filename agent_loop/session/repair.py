"""What has to be added to a log that a crash cut off, so that it is a valid transcript again. Pure.

For cold logs only: a live session's open turn is no debris. Nothing is taken away; what the person saw
is kept, calls without a result get one that tells the model what is known of them, and the open step
and turn are closed, the turn as `interrupted`.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from agent_loop.cards import CardText
from agent_loop.chunks import ReasoningDelta, TextDelta
from agent_loop.events.facts import (
    AssistantChunk,
    AssistantMessage,
    AssistantRun,
    EndReason,
    LoggedFact,
    LogRow,
    RequestRetried,
    SessionMode,
    SessionModel,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    ToolStarted,
    TurnEnd,
    TurnStart,
    facts_in,
)
from agent_loop.events.facts_json import placed
from agent_loop.messages import Content, Reasoning, Text, ToolCallBlock

NOT_STARTED: Final = "The server went down before this call started; it had no effect. It may be made again."
UNKNOWN: Final = (
    "The server went down while this call ran; whether it had an effect is unknown."
    " Look before you make it again."
)

_Delta = type[TextDelta] | type[ReasoningDelta]


def closers(rows: Iterable[LogRow]) -> list[LoggedFact]:
    """The facts that close what is open at a log's end, placed and timed behind it; none for a whole log."""
    tail = _Tail()
    for row in rows:
        tail.take(row)
    return tail.closers()


def whole_turns(rows: Sequence[LogRow]) -> list[LogRow]:
    """The rows up to the last turn that is closed, facts of the session behind it included.

    A mode or a model chosen in the turn that is left out is kept all the same: a mode may be a stricter one.
    """
    opened = 0
    is_open = False
    mode: SessionMode | None = None
    model: SessionModel | None = None
    for at, row in enumerate(rows):
        match row:
            case TurnStart():
                opened, is_open, mode, model = at, True, None, None
            case TurnEnd():
                is_open = False
            case SessionMode():
                mode = row
            case SessionModel():
                model = row
            case _:
                pass
    if not is_open:
        return list(rows)
    kept = list(rows[:opened])
    seq = rows[opened].seq
    if mode is not None:
        kept.append(placed(SessionMode(mode.mode), seq, mode.time))
        seq += 1
    if model is not None:
        kept.append(placed(SessionModel(model.model, model.thought), seq, model.time))
    return kept


class _Tail:
    """The open turn at a log's end."""

    def __init__(self) -> None:
        self._next_seq = 0
        self._time = 0
        self._turn: int | None = None
        self._step: int | None = None
        self._attempt = 1
        self._shown: dict[tuple[int, _Delta], list[str]] = {}
        self._owed: dict[str, ToolCallBlock] = {}
        self._calls: dict[str, ToolCall] = {}
        self._started: set[str] = set()

    def take(self, row: LogRow) -> None:
        self._next_seq += facts_in(row)
        self._time = row.last_time if isinstance(row, AssistantRun) else row.time
        match row:
            case TurnStart(turn=turn):
                self._turn = turn
            case TurnEnd():
                self._turn = None
            case StepStart(step=step):
                self._step = step
                self._shown, self._owed, self._calls, self._started = {}, {}, {}, set()
            case StepEnd():
                self._step = None
            case RequestRetried(attempt=attempt):
                self._attempt, self._shown = attempt + 1, {}
            case AssistantRun():
                self._show(row.attempt, row.index, row.delta, row.texts)
            case AssistantChunk(attempt=attempt, chunk=TextDelta() | ReasoningDelta() as delta):
                self._show(attempt, delta.index, type(delta), [delta.text])
            case AssistantMessage(content=content):
                self._shown = {}
                self._owed.update((block.id, block) for block in content if isinstance(block, ToolCallBlock))
            case ToolCall(call_id=call_id):
                self._calls[call_id] = row
            case ToolStarted(call_id=call_id):
                self._started.add(call_id)
            case ToolResult(call_id=call_id):
                self._owed.pop(call_id, None)
            case _:
                pass

    def closers(self) -> list[LoggedFact]:
        if self._turn is None:
            return []
        added: list[LoggedFact] = []
        if self._step is not None:
            prefix = self._prefix()
            if prefix:
                added.append(
                    AssistantMessage(self._turn, self._step, self._attempt, prefix, interrupted=True)
                )
            for block in self._owed.values():
                added.extend(self._closed_call(block, self._turn, self._step))
            added.append(StepEnd(self._turn, self._step))
        added.append(TurnEnd(self._turn, EndReason("interrupted")))
        return [placed(fact, seq, self._time) for seq, fact in enumerate(added, self._next_seq)]

    def _show(self, attempt: int, index: int, delta: _Delta, texts: list[str]) -> None:
        if attempt != self._attempt:
            self._attempt, self._shown = attempt, {}
        self._shown.setdefault((index, delta), []).extend(texts)

    def _prefix(self) -> tuple[Content, ...]:
        """What the person saw of an answer that has no message yet, by block in order of opening."""
        blocks = ((delta, "".join(texts)) for (_, delta), texts in self._shown.items())
        return tuple(
            Text(text) if delta is TextDelta else Reasoning(text) for delta, text in blocks if text.strip()
        )

    def _closed_call(self, block: ToolCallBlock, turn: int, step: int) -> list[LoggedFact]:
        call = self._calls.get(block.id)
        started = block.id in self._started
        words = UNKNOWN if started else NOT_STARTED
        card = None if call is None else call.card
        result = ToolResult(
            turn,
            step,
            block.id,
            (Text(words),),
            is_error=True,
            outcome="unknown" if started else "skipped",
            error_code="TOOL_OUTCOME_UNKNOWN" if started else "TOOL_NOT_STARTED",
            card=None if card is None else card.with_status("failed", (CardText(words),)),
        )
        if call is not None:
            return [result]
        return [ToolCall(turn, step, block.id, block.name, block.arguments, None), result]
