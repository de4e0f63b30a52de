"""Logs that were cut or damaged at any byte: the longest whole part is read, or the error is clear.

Decision 15 and contracts 1: never another exception, never the silent loss of a turn that ended.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_loop.chunks import ReasoningDelta, TextDelta
from agent_loop.errors import StoreError
from agent_loop.events.facts import (
    AssistantChunk,
    AssistantMessage,
    AssistantRun,
    LoggedFact,
    LogRow,
    SessionTitle,
    StepStart,
    ToolStarted,
    TurnEnd,
)
from agent_loop.events.facts_json import row_to_json
from agent_loop.llm.providers.openai_request import messages_out
from agent_loop.messages import Text, ToolCallBlock
from agent_loop.persistence.scan import read_log
from agent_loop.session.header import SessionHeader, header_to_json
from agent_loop.session.history import History
from agent_loop.session.invariants import Invariants
from agent_loop.session.log import SessionLog
from agent_loop.session.repair import closers
from tests.doubles.conversations import COMMAND, EDIT, begin, call, deltas, end
from tests.doubles.facts import TIME_MS
from tests.doubles.openai_wire import problem

ID = "s-1"
HEADER = orjson.dumps(header_to_json(SessionHeader(ID, TIME_MS, "/home/me"))) + b"\n"
# What makes another value, another row or no JSON of a row, and what a failing disk leaves.
BYTES = b'0159.-eE"\\,:[]{}ntr \n\x00\xff'
Edit = tuple[str, int, int]
"""What is done to a log: replace, insert or delete; the place; the byte."""


def turn(number: int) -> list[LoggedFact]:
    """A turn with a thought, words and two calls."""
    first, second = f"c{number}", f"d{number}"
    blocks = (ToolCallBlock(first, "edit", "{}"), ToolCallBlock(second, "run", "{}"))
    return [
        *begin(number, "Größe?"),
        *deltas(number, ReasoningDelta, "Let me ", "see"),
        *deltas(number, TextDelta, "I mend", " it."),
        AssistantMessage(number, 1, 1, (Text("I mend it."), *blocks)),
        *call(number, first, EDIT),
        *call(number, second, COMMAND),
        *end(number),
    ]


def rows_of(facts: Sequence[LoggedFact]) -> list[LogRow]:
    """The rows a store gets, runs packed, deltas a few milliseconds apart."""
    times = iter(range(TIME_MS, TIME_MS + 12 * len(facts), 12))
    log = SessionLog(clock=lambda: next(times))
    for fact in facts:
        log.append(fact)
    return list(log.rows_since(0))


def lines_of(rows: Sequence[LogRow]) -> list[bytes]:
    return [orjson.dumps(row_to_json(row)) + b"\n" for row in rows]


def cut_off(kind: type[LoggedFact]) -> list[LogRow]:
    """A log whose second turn was cut off behind its last fact of a kind."""
    facts = [*turn(1), SessionTitle("Größe?", "prompt"), *turn(2)]
    last = max(at for at, fact in enumerate(facts) if isinstance(fact, kind))
    return rows_of(facts[: last + 1])


WHOLE = rows_of([*turn(1), SessionTitle("Größe?", "prompt"), *turn(2), *turn(3)])
IN_THE_STREAM = cut_off(AssistantChunk)
IN_A_COMMAND = cut_off(ToolStarted)
REPAIRED = [*IN_A_COMMAND, *closers(IN_A_COMMAND)]
LOGS = {"whole": WHOLE, "in the stream": IN_THE_STREAM, "in a command": IN_A_COMMAND, "repaired": REPAIRED}


def facts_of(rows: Sequence[LogRow]) -> Iterator[LoggedFact]:
    for row in rows:
        yield from row.facts_from(row.seq) if isinstance(row, AssistantRun) else (row,)


def closed(rows: Sequence[LogRow]) -> list[LogRow]:
    """The log once it is repaired; reading it back must give just that, with nothing more to repair."""
    added = closers(rows)
    data = HEADER + b"".join(lines_of([*rows, *added]))
    _, again, size = read_log(data, ID)
    assert lines_of(again) == lines_of([*rows, *added])
    assert (size, closers(again)) == (len(data), [])
    return again


@pytest.mark.parametrize("rows", [WHOLE, REPAIRED], ids=["whole", "repaired"])
def test_a_log_cut_at_any_byte_gives_every_row_that_is_whole(rows: list[LogRow]) -> None:
    """Contracts 1: also a repair that was itself cut off. What is left is closed and stays so."""
    lines = lines_of(rows)
    data = HEADER + b"".join(lines)
    ends = [len(HEADER) + size for size in accumulate(map(len, lines), initial=0)]

    for cut in range(len(HEADER), len(data) + 1):
        whole = sum(end <= cut for end in ends) - 1

        _, read, size = read_log(data[:cut], ID)

        assert (len(read), size) == (whole, ends[whole])
        if cut in ends:
            assert lines_of(read) == lines[:whole]
            repaired = closed(read)
            Invariants().check_all(facts_of(repaired))
            require_valid_history(repaired)


def require_valid_history(rows: Sequence[LogRow]) -> None:
    """At each request it is one that providers take."""
    history = History()
    for row in rows:
        history.fold([row])
        if isinstance(row, StepStart):
            messages = messages_out("", history.messages(), returns_reasoning=True)
            assert problem({"messages": messages}) is None


def test_a_log_cut_inside_its_header_is_refused() -> None:
    """A header appears whole or not at all, so this is no crash of ours."""
    for cut in range(len(HEADER)):
        with pytest.raises(StoreError) as raised:
            read_log(HEADER[:cut], ID)
        assert raised.value.kind == "corrupt"


def damaged(data: bytes, edits: Sequence[Edit]) -> bytes:
    for how, at, byte in sorted(edits, key=lambda edit: -edit[1]):
        kept = data[at:] if how == "insert" else data[at + 1 :]
        data = data[:at] + (b"" if how == "delete" else bytes([byte])) + kept
    return data


def require_nothing_lost(rows: Sequence[LogRow], edits: Sequence[Edit]) -> None:
    """Damage a log, read it, and see that what is whole was read, or the log refused in words."""
    whole = HEADER + b"".join(lines_of(rows))
    data = damaged(whole, edits)
    found = read_or_refusal(data)
    if isinstance(found, StoreError):
        assert found.kind in ("corrupt", "version")
        assert ID in str(found)
        return

    read, size = found
    before = whole[: min(at for _, at, _ in edits)]
    untouched = before[: before.rfind(b"\n") + 1]
    assert data[:size].startswith(untouched)
    behind = whole[max(at for _, at, _ in edits) + 1 :].partition(b"\n")[2]
    last_end = behind.rfind(TurnEnd.TYPE.encode())
    assert last_end < 0 or size > len(data) - len(behind) + last_end
    require_usable(read)


def read_or_refusal(data: bytes) -> tuple[list[LogRow], int] | StoreError:
    try:
        _, rows, size = read_log(data, ID)
    except StoreError as error:
        return error
    return rows, size


def require_usable(rows: Sequence[LogRow]) -> None:
    """What was read goes through everything that a load puts it through."""
    repaired = closed(rows)
    log = SessionLog(repaired)
    history = History()
    history.fold(log.rows_since(0))
    messages_out("", history.messages(), returns_reasoning=True)


@pytest.mark.parametrize(
    ("was", "now"), [(b'"dt_ms":[0,12]', b'"dt_ms":[0,1.2]'), (b'"texts":["I mend"', b'"texts":[1')]
)
def test_a_run_whose_times_or_texts_are_none_is_a_broken_row(was: bytes, now: bytes) -> None:
    """Found by damaging every byte: such a run gave closers a time that no later load could read."""
    whole = HEADER + b"".join(lines_of(IN_THE_STREAM))
    before, _, behind = whole.rpartition(was)

    _, read, size = read_log(before + now + behind, ID)

    assert size == before.rfind(b"\n") + 1
    assert lines_of(read) == lines_of(IN_THE_STREAM)[: len(read)]
    require_usable(read)


def edits_of(rows: Sequence[LogRow]) -> st.SearchStrategy[list[Edit]]:
    size = len(HEADER) + sum(map(len, lines_of(rows)))
    how = st.sampled_from(["replace", "insert", "delete"])
    bytes_ = st.sampled_from(BYTES) | st.integers(0, 255)
    one = st.tuples(how, st.integers(0, size - 1), bytes_)
    return st.lists(one, min_size=1, max_size=4, unique_by=lambda edit: edit[1])


@pytest.mark.parametrize("rows", LOGS.values(), ids=LOGS.keys())
@given(data=st.data())
@settings(max_examples=100)
def test_damage_anywhere_is_refused_in_words_or_loses_no_turn_that_ended(
    rows: list[LogRow], data: st.DataObject
) -> None:
    """Contracts 1: damage with a whole turn behind it is corruption; else only what is behind it is cut."""
    require_nothing_lost(rows, data.draw(edits_of(rows)))


@pytest.mark.sweep
@pytest.mark.parametrize("rows", LOGS.values(), ids=LOGS.keys())
def test_every_single_byte_may_be_damaged(rows: list[LogRow]) -> None:
    """The same at each byte of the log: left out, replaced, or with one before it."""
    size = len(HEADER) + sum(map(len, lines_of(rows)))
    for at in range(size):
        require_nothing_lost(rows, [("delete", at, 0)])
        for byte in b'1.e"]\n':
            require_nothing_lost(rows, [("replace", at, byte)])
            require_nothing_lost(rows, [("insert", at, byte)])


@pytest.mark.sweep
@given(data=st.data())
@settings(max_examples=20_000)
def test_many_ways_of_damage_lose_no_turn_that_ended(data: st.DataObject) -> None:
    """The same with several places damaged at once."""
    rows = data.draw(st.sampled_from(list(LOGS.values())))
    require_nothing_lost(rows, data.draw(edits_of(rows)))
