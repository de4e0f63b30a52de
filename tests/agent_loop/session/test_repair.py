"""What closes a log that a crash cut off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.cards import Card, CardText
from agent_loop.chunks import BlockStart, ReasoningDelta, TextDelta
from agent_loop.events.facts import (
    AssistantChunk,
    AssistantMessage,
    EndReason,
    LoggedFact,
    PluginFact,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    ToolStarted,
    Trigger,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from agent_loop.messages import USER, Reasoning, Text, ToolCallBlock
from agent_loop.session.invariants import Invariants
from agent_loop.session.log import SessionLog
from agent_loop.session.repair import NOT_STARTED, UNKNOWN, closers

CALLS = (ToolCallBlock("c1", "run", "{}"), ToolCallBlock("c2", "run", "{}"), ToolCallBlock("c3", "run", "{}"))
CARD = Card("execute", "run")


def whole_turn(turn: int) -> list[LoggedFact]:
    """A turn in which one call ran, another started, a third was announced, a fourth only asked for."""
    done = (Text("done"),)
    return [
        TurnStart(turn, Trigger("message", USER), (f"m{turn}",)),
        UserMessage(turn, f"m{turn}", (Text("go"),), USER),
        StepStart(turn, 1),
        AssistantChunk(turn, 1, 1, BlockStart(0, "reasoning")),
        AssistantChunk(turn, 1, 1, ReasoningDelta(0, "so")),
        AssistantChunk(turn, 1, 1, TextDelta(1, "half a ")),
        AssistantChunk(turn, 1, 1, TextDelta(1, "word")),
        AssistantMessage(turn, 1, 1, (Text("half a word"), *(block_for(turn, call) for call in CALLS))),
        ToolCall(turn, 1, f"c1.{turn}", "run", "{}", CARD),
        ToolStarted(turn, 1, f"c1.{turn}"),
        ToolResult(turn, 1, f"c1.{turn}", done, False, "ran", card=CARD.with_status("done")),
        ToolCall(turn, 1, f"c2.{turn}", "run", "{}", CARD),
        ToolStarted(turn, 1, f"c2.{turn}"),
        ToolResult(turn, 1, f"c2.{turn}", done, False, "ran", card=CARD.with_status("done")),
        ToolCall(turn, 1, f"c3.{turn}", "run", "{}", CARD),
        ToolResult(turn, 1, f"c3.{turn}", done, True, "denied", card=CARD.with_status("failed")),
        StepEnd(turn, 1),
        PluginFact("p", "k", None),
        TurnEnd(turn, EndReason("completed")),
    ]


def block_for(turn: int, call: ToolCallBlock) -> ToolCallBlock:
    return ToolCallBlock(f"{call.id}.{turn}", call.name, call.arguments)


def log_of(facts: list[LoggedFact]) -> SessionLog:
    times = iter(range(1000, 100_000))
    log = SessionLog(clock=lambda: next(times))
    for fact in facts:
        log.append(fact)
    return log


def cut_after(kind: type, nth: int = 1) -> list[LoggedFact]:
    """The first turn up to its nth fact of that class."""
    facts = whole_turn(1)
    places = [at for at, fact in enumerate(facts) if isinstance(fact, kind)]
    return facts[: places[nth - 1] + 1]


def test_a_whole_log_needs_nothing() -> None:
    """Spec loop 3.3: a balanced or empty log has no closers."""
    assert closers([]) == []
    assert closers(log_of(whole_turn(1) + whole_turn(2)[:0]).rows_since(0)) == []


def test_a_fact_between_turns_leaves_nothing_open() -> None:
    """Contract: facts of the session may stand between turns."""
    assert closers(log_of([*whole_turn(1), PluginFact("p", "k", None)])) == []


def test_closers_stand_behind_the_log_at_the_time_of_its_last_fact() -> None:
    """Spec loop 3.3: the numbers go on, the time is the last real event's."""
    log = log_of(cut_after(UserMessage))

    [end] = closers(log.rows_since(0))

    assert (end.seq, end.time) == (2, 1001)
    assert end == TurnEnd(1, EndReason("interrupted"))


@pytest.mark.parametrize("unpacked", [False, True])
def test_what_the_person_saw_of_an_unfinished_answer_is_kept(unpacked: bool) -> None:
    """Our promise: the model knows the half sentence the person saw, packed on disk or not."""
    log = log_of(cut_after(AssistantChunk, 4))

    added = closers(log if unpacked else log.rows_since(0))

    kept = (Reasoning("so"), Text("half a word"))
    assert added == [
        AssistantMessage(1, 1, 1, kept, interrupted=True),
        StepEnd(1, 1),
        TurnEnd(1, EndReason("interrupted")),
    ]


def test_only_the_newest_attempt_of_an_answer_is_kept() -> None:
    """Our promise: a failed attempt derives nothing."""
    again = [AssistantChunk(1, 1, 2, TextDelta(0, "second"))]

    added = closers(log_of([*cut_after(AssistantChunk, 4), *again]).rows_since(0))

    assert added[0] == AssistantMessage(1, 1, 2, (Text("second"),), interrupted=True)


def test_blank_text_is_not_worth_a_message() -> None:
    """Spec loop 3.3: nothing visible, no message."""
    blank = [AssistantChunk(1, 1, 1, TextDelta(0, " \n"))]

    added = closers(log_of([*cut_after(StepStart), *blank]).rows_since(0))

    assert added == [StepEnd(1, 1), TurnEnd(1, EndReason("interrupted"))]


def test_each_call_is_told_apart_by_how_far_it_came() -> None:
    """Contract: no `tool/started`, no effect; with it, the outcome is unknown; results are kept."""
    log = log_of(cut_after(ToolStarted, 2))

    added = closers(log.rows_since(0))

    unknown, never = (Text(UNKNOWN),), (Text(NOT_STARTED),)
    assert added[:-2] == [
        ToolResult(
            1,
            1,
            "c2.1",
            unknown,
            True,
            "unknown",
            "TOOL_OUTCOME_UNKNOWN",
            card=CARD.with_status("failed", (CardText(UNKNOWN),)),
        ),
        ToolCall(1, 1, "c3.1", "run", "{}", None),
        ToolResult(1, 1, "c3.1", never, True, "skipped", "TOOL_NOT_STARTED"),
    ]


def test_a_call_that_was_announced_but_not_started_fails_on_its_card() -> None:
    """Bug report yolop PR272: calls cut off by a crash were shown as pending for ever."""
    added = closers(log_of(cut_after(ToolCall, 3)).rows_since(0))

    [result] = [fact for fact in added if isinstance(fact, ToolResult)]
    assert (result.call_id, result.error_code) == ("c3.1", "TOOL_NOT_STARTED")
    assert result.card == CARD.with_status("failed", (CardText(NOT_STARTED),))


@given(cut=st.integers(0, 2 * len(whole_turn(1))), packed=st.booleans())
def test_a_log_cut_anywhere_is_valid_once_it_is_closed(cut: int, packed: bool) -> None:
    """Our promise: kill -9 at any point, then load: the history is valid for every provider."""
    log = log_of((whole_turn(1) + whole_turn(2))[:cut])

    added = closers(log.rows_since(0) if packed else log)

    Invariants().check_all([*log, *added])
    assert closers([*log, *added]) == []
