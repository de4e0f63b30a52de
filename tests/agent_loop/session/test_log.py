"""The session log: places, observers, cursors and the folding of deltas."""

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.chunks import BlockStart, Chunk, ReasoningDelta, TextDelta
from agent_loop.events.contain import StrayCancel
from agent_loop.events.facts import (
    AssistantChunk,
    AssistantMessage,
    AssistantRun,
    EndReason,
    LoggedFact,
    PluginFact,
    StepEnd,
    StepStart,
    TurnEnd,
    facts_in,
)
from agent_loop.events.facts_json import fact_to_json
from agent_loop.messages import ToolCallBlock
from agent_loop.session.log import SessionLog
from tests.doubles.clock import SteppingClock
from tests.doubles.facts import TIME_MS, one_turn, placed_facts


def note(kind: str) -> PluginFact:
    return PluginFact("p", kind, None)


def kinds(facts: list[LoggedFact]) -> list[str]:
    return [fact.kind for fact in facts if isinstance(fact, PluginFact)]


def test_a_fact_gets_its_place_and_time_from_the_log() -> None:
    """Loop specification 3.1: seq from 0 without gaps, time in milliseconds."""
    log = SessionLog(clock=SteppingClock())

    log.append(note("a"))
    log.append(AssistantChunk(1, 1, 1, TextDelta(0, "b")))

    assert [(fact.seq, fact.time) for fact in log] == [(0, TIME_MS + 1), (1, TIME_MS + 2)]
    assert log.next_seq == 2


def test_every_observer_is_told_and_then_the_first_exception_reaches_the_appender() -> None:
    """Contract 1: push, tell everyone, then raise."""
    log, heard = SessionLog(), list[LoggedFact]()

    def raises(text: str) -> Callable[[LoggedFact], object]:
        def observer(_: LoggedFact) -> object:
            raise RuntimeError(text)

        return observer

    log.observe(raises("first"))
    log.observe(raises("second"))
    log.observe(heard.append)

    with pytest.raises(RuntimeError, match="first"):
        log.append(note("a"))

    assert (list(log), kinds(heard)) == (heard, ["a"])


def test_a_stray_cancellation_out_of_an_observer_is_an_error_like_any_other() -> None:
    """Contract 6: a synchronous observer is never the target of a real one."""
    log, heard = SessionLog(), list[LoggedFact]()

    def strays(_: LoggedFact) -> None:
        raise asyncio.CancelledError

    log.observe(strays)
    log.observe(strays)
    log.observe(heard.append)

    with pytest.raises(StrayCancel):
        log.append(note("a"))

    assert kinds(heard) == ["a"]


def test_an_append_made_while_telling_is_told_after_by_the_outermost_append() -> None:
    """Contract 1: pushed at once, so every observer hears facts in order."""
    log, early, late = SessionLog(), list[LoggedFact](), list[LoggedFact]()

    def answers(fact: LoggedFact) -> None:
        early.append(fact)
        if kinds([fact]) == ["a"]:
            log.append(note("b"))
            assert kinds(list(log)) == ["a", "b"]
            log.append(note("c"))

    log.observe(answers)
    log.observe(late.append)

    log.append(note("a"))

    assert (kinds(early), kinds(late)) == (["a", "b", "c"], ["a", "b", "c"])


def test_what_is_raised_over_an_inner_append_reaches_the_outermost_appender() -> None:
    """Contract 1: the inner append only pushes."""
    log, inner = SessionLog(), list[str]()

    def answers(fact: LoggedFact) -> None:
        if kinds([fact]) == ["a"]:
            log.append(note("b"))
            inner.append("went through")

    def refuses(fact: LoggedFact) -> None:
        if kinds([fact]) == ["b"]:
            raise RuntimeError("not b")

    log.observe(answers)
    log.observe(refuses)

    with pytest.raises(RuntimeError, match="not b"):
        log.append(note("a"))
    log.append(note("c"))

    assert (inner, kinds(list(log))) == (["went through"], ["a", "b", "c"])


def test_observers_come_and_go() -> None:
    """Our promise: an order, an idempotent disposer, and nothing about the past."""
    log, heard = SessionLog(), list[str]()
    log.append(note("before"))
    dispose = log.observe(lambda _: heard.append("second"))
    log.observe(lambda _: heard.append("first"), prepend=True)

    log.append(note("a"))
    assert heard == ["first", "second"]

    dispose()
    dispose()
    log.append(note("b"))
    assert heard == ["first", "second", "first"]


def test_whoever_sleeps_is_woken_once_before_observers() -> None:
    """Our promise: the recorder costs an append nothing, and sees what an observer is told of."""
    log, order = SessionLog(), list[str]()
    log.wake_once(lambda: order.append(f"woken at {log.next_seq}"))
    log.wake_once(lambda: order.append("woken too"))
    log.observe(lambda _: order.append("told"))

    log.append(note("a"))
    log.append(note("b"))

    assert order == ["woken at 1", "woken too", "told", "told"]


def test_a_log_knows_what_is_open() -> None:
    """Loop specification 4.3.27: whether a turn is open is read from the log."""
    log, states = SessionLog(), list[tuple[int, int | None, int | None]]()
    log.observe(lambda _: states.append((log.last_turn, log.open_turn, log.open_step)))

    for fact in one_turn():
        log.append(fact)

    opened, stepping, stepped = (1, 1, None), (1, 1, 1), (1, None, None)
    assert states == [opened, opened, stepping, stepping, stepping, opened, stepped]


def test_a_log_remembers_the_ids_of_all_calls() -> None:
    """Contract 1: an id is used once in a session, also after a resume."""
    message = AssistantMessage(1, 1, 1, (ToolCallBlock("c1", "t", "{}"), ToolCallBlock("c2", "t", "{}")))

    log = SessionLog(placed_facts([message]))

    assert log.call_ids == {"c1", "c2"}


def test_a_seeded_log_tells_nobody_and_goes_on_at_the_next_place() -> None:
    """Loop specification 8.3.15: the next turn number is the last one's successor."""
    log, heard = SessionLog(one_turn()), list[LoggedFact]()
    log.observe(heard.append)

    log.append(note("a"))

    assert (log.last_turn, log.open_turn, log.next_seq) == (1, None, 8)
    assert [fact.seq for fact in heard] == [7]
    assert rows(list(log)[:7]) == rows(one_turn())


def test_a_seed_with_a_gap_is_no_log() -> None:
    """Loop specification 8.13: seed fact i is number i."""
    with pytest.raises(ValueError, match="place 1 says it is number 2"):
        SessionLog([*placed_facts([note("a")]), *placed_facts([note("b")], 2)])


@pytest.mark.parametrize("seq", range(9))
def test_a_cursor_sees_what_came_after_it(seq: int) -> None:
    """Contract 1: any place is fine, one inside a run and one at the end too."""
    log = seeded_with_runs()

    assert [fact.seq for fact in log.since(seq)] == list(range(seq, 8))
    found = list(log.rows_since(seq))
    assert sum(facts_in(row) for row in found) == 8 - seq
    assert [row.seq for row in found][:1] == [seq][: 8 - seq]


def test_deltas_of_one_block_are_kept_as_one_object() -> None:
    """Our promise: an object per delta would cost the garbage collector too much."""
    assert [type(row) for row in seeded_with_runs().rows_since(0)] == [
        StepStart,
        AssistantRun,
        AssistantRun,
        AssistantRun,
        AssistantChunk,
        AssistantRun,
    ]


def test_a_packed_log_resumes_as_it_was() -> None:
    """Contract 1: packing on disk never changes what a log shows."""
    log = seeded_with_runs()
    log.append(StepEnd(1, 1))
    log.append(TurnEnd(1, EndReason("completed")))

    again = SessionLog(list(log.rows_since(0)))

    assert rows(list(again)) == rows(list(log))
    again.append(AssistantChunk(1, 1, 1, TextDelta(0, "x")))
    assert again.next_seq == log.next_seq + 1


def test_a_packed_run_is_not_joined_to_an_unpacked_one_before_it() -> None:
    """Contract 1: a store may give back either, in any mixture."""
    log = seeded_with_runs()
    facts, packed = list(log), list(log.rows_since(0))

    mixed = SessionLog([*facts[:3], packed[2]])
    mixed.append(AssistantChunk(1, 1, 1, TextDelta(0, "more of the first")))

    assert rows(list(mixed)[:4]) == rows(facts[:4])
    assert [fact.seq for fact in mixed] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", ["appended", "packed", "unpacked"])
def test_the_end_of_a_long_log_is_read_without_its_beginning(
    seed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loop specification 9.44: no scan of the whole log for its last facts."""
    log = seeded_with_runs()
    if seed != "appended":
        log = SessionLog(list(log.rows_since(0)) if seed == "packed" else list(log))
    read: list[int] = []
    unfold = AssistantRun.facts_from

    def counted(run: AssistantRun, seq: int) -> list[AssistantChunk]:
        read.append(run.seq)
        return unfold(run, seq)

    monkeypatch.setattr(AssistantRun, "facts_from", counted)

    assert ([fact.seq for fact in log.since(7)], read) == ([7], [7])
    assert [fact.seq for fact in log.since(6)] == [6, 7]
    assert read == [7, 7]


DELTAS = st.one_of(
    st.builds(TextDelta, st.integers(0, 1), st.text(max_size=2)),
    st.builds(ReasoningDelta, st.integers(0, 1), st.text(max_size=2)),
    st.builds(BlockStart, st.integers(0, 1), st.just("text")),
)


@given(st.lists(st.tuples(st.integers(1, 2), DELTAS, st.integers(0, 9)), max_size=20), st.integers(0, 20))
def test_folding_is_lossless(chunks: list[tuple[int, Chunk, int]], cut: int) -> None:
    """Contract 1: iterating a log always shows the facts that were appended, with their own times."""
    clock = SteppingClock()
    log, told = SessionLog(clock=clock), list[LoggedFact]()
    log.observe(told.append)

    for attempt, chunk, step_ms in chunks:
        clock.step_ms = step_ms
        log.append(AssistantChunk(1, 1, attempt, chunk))

    assert rows(list(log)) == rows(told)
    assert rows(list(SessionLog(list(log.rows_since(0))).since(cut))) == rows(told[cut:])


def seeded_with_runs() -> SessionLog:
    log = SessionLog(clock=SteppingClock())
    log.append(StepStart(1, 1))
    chunks: list[Chunk] = [
        TextDelta(0, "a"),
        TextDelta(0, "b"),
        TextDelta(1, "other block"),
        ReasoningDelta(1, "other kind"),
        ReasoningDelta(1, "same"),
    ]
    for chunk in chunks:
        log.append(AssistantChunk(1, 1, 1, chunk))
    log.append(AssistantChunk(1, 1, 1, BlockStart(2, "text")))
    log.append(AssistantChunk(1, 1, 2, TextDelta(0, "other attempt")))
    return log


def rows(facts: list[LoggedFact]) -> list[object]:
    return [fact_to_json(fact) for fact in facts]
