"""Facts and chunks as rows and back: the format stored sessions depend on."""

import json
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.cards import Card
from agent_loop.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from agent_loop.events import facts as f
from agent_loop.events.facts_json import (
    chunk_from_json,
    chunk_to_json,
    fact_from_json,
    fact_to_json,
    placed,
    row_from_json,
    row_to_json,
)
from agent_loop.jsonvalue import thaw_json
from agent_loop.messages import USER, Text
from tests.doubles.facts import STRATEGIES, any_fact, drawn_chunks, runs, unhurried

USER_ROW = {"kind": "user"}
HI_ROW = [{"type": "text", "text": "hi"}]
HI = (Text("hi"),)

# Every fact with its data as it stands in a file; what the optional fields look like, too.
SPELLINGS: list[tuple[f.LoggedFact, str, dict[str, Any]]] = [
    (
        f.TurnStart(1, f.Trigger("message", USER), ("m1", "m2")),
        "turn/start",
        {"turn": 1, "trigger": {"kind": "message", "source": USER_ROW}, "messageIds": ["m1", "m2"]},
    ),
    (f.TurnEnd(1, f.EndReason("completed")), "turn/end", {"turn": 1, "reason": {"kind": "completed"}}),
    (
        f.TurnEnd(1, f.EndReason("aborted", "client", "stopped")),
        "turn/end",
        {"turn": 1, "reason": {"kind": "aborted", "cause": "client", "text": "stopped"}},
    ),
    (
        f.TurnEnd(1, f.EndReason("error", error_kind="auth", message="no key")),
        "turn/end",
        {"turn": 1, "reason": {"kind": "error", "errorKind": "auth", "message": "no key"}},
    ),
    (
        f.TurnEnd(1, f.EndReason("error", error_kind="quota", message="out", data={"status": 429})),
        "turn/end",
        {
            "turn": 1,
            "reason": {"kind": "error", "errorKind": "quota", "message": "out", "data": {"status": 429}},
        },
    ),
    (f.StepStart(1, 2), "step/start", {"turn": 1, "step": 2}),
    (f.StepEnd(1, 2), "step/end", {"turn": 1, "step": 2}),
    (
        f.UserMessage(1, "m1", HI, USER),
        "user/message",
        {"turn": 1, "id": "m1", "content": HI_ROW, "source": USER_ROW},
    ),
    (
        f.SteeringMessage(1, "m2", HI, USER),
        "steering/message",
        {"turn": 1, "id": "m2", "content": HI_ROW, "source": USER_ROW},
    ),
    (
        f.ContextMessage(1, HI, USER),
        "context/message",
        {"turn": 1, "content": HI_ROW, "source": USER_ROW},
    ),
    (
        f.AssistantChunk(1, 2, 3, TextDelta(0, "h")),
        "assistant/chunk",
        {"turn": 1, "step": 2, "attempt": 3, "chunk": {"type": "text-delta", "index": 0, "text": "h"}},
    ),
    (
        f.AssistantMessage(1, 2, 3, HI, interrupted=True),
        "assistant/message",
        {"turn": 1, "step": 2, "attempt": 3, "content": HI_ROW, "interrupted": True},
    ),
    (
        f.ToolCall(1, 2, "c1", "read", "{}", None),
        "tool/call",
        {"turn": 1, "step": 2, "callId": "c1", "name": "read", "arguments": "{}", "card": None},
    ),
    (
        f.ToolCall(1, 2, "c1", "read", "{}", Card("read", "a")),
        "tool/call",
        {
            "turn": 1,
            "step": 2,
            "callId": "c1",
            "name": "read",
            "arguments": "{}",
            "card": {"kind": "read", "title": "a", "status": "pending"},
        },
    ),
    (f.ToolStarted(1, 2, "c1"), "tool/started", {"turn": 1, "step": 2, "callId": "c1"}),
    (
        f.ToolResult(1, 2, "c1", HI, False, "ran"),
        "tool/result",
        {
            "turn": 1,
            "step": 2,
            "callId": "c1",
            "content": HI_ROW,
            "isError": False,
            "outcome": "ran",
            "card": None,
        },
    ),
    (
        f.ToolResult(1, 2, "c1", HI, True, "ran", "TIMEOUT", f.Exit(None, "KILL", True), Card("read", "a")),
        "tool/result",
        {
            "turn": 1,
            "step": 2,
            "callId": "c1",
            "content": HI_ROW,
            "isError": True,
            "outcome": "ran",
            "card": {"kind": "read", "title": "a", "status": "pending"},
            "errorCode": "TIMEOUT",
            "exit": {"code": None, "signal": "KILL", "timedOut": True},
        },
    ),
    (
        f.PermissionAsked(1, 2, "c1", ("allow", "reject")),
        "permission/asked",
        {"turn": 1, "step": 2, "callId": "c1", "options": ["allow", "reject"]},
    ),
    (
        f.PermissionDecided(1, 2, "c1", True, "user", "allow"),
        "permission/decided",
        {"turn": 1, "step": 2, "callId": "c1", "allowed": True, "by": "user", "option": "allow"},
    ),
    (
        f.PermissionAsked(1, 2, "c1", (), "mode ask"),
        "permission/asked",
        {"turn": 1, "step": 2, "callId": "c1", "options": [], "rule": "mode ask"},
    ),
    (
        f.PermissionDecided(1, 2, "c1", False, "rule", rule='deny path ".env"'),
        "permission/decided",
        {
            "turn": 1,
            "step": 2,
            "callId": "c1",
            "allowed": False,
            "by": "rule",
            "option": None,
            "rule": 'deny path ".env"',
        },
    ),
    (
        f.UsageRecorded(1, 2, Usage(1, 2, 3, 4, 5)),
        "usage",
        {
            "turn": 1,
            "step": 2,
            "usage": {
                "inputTokens": 1,
                "outputTokens": 2,
                "cacheReadTokens": 3,
                "cacheWriteTokens": 4,
                "reasoningTokens": 5,
            },
        },
    ),
    (
        f.PlanChanged(
            1, 2, (f.PlanEntry("Look", "high", "completed"), f.PlanEntry("Mend", "low", "pending"))
        ),
        "plan",
        {
            "turn": 1,
            "step": 2,
            "entries": [
                {"content": "Look", "priority": "high", "status": "completed"},
                {"content": "Mend", "priority": "low", "status": "pending"},
            ],
        },
    ),
    (
        f.UsageRecorded(1, 2, Usage(1, 2), 100, f.Cost(0.25, 1.5, "EUR")),
        "usage",
        {
            "turn": 1,
            "step": 2,
            "usage": {
                "inputTokens": 1,
                "outputTokens": 2,
                "cacheReadTokens": 0,
                "cacheWriteTokens": 0,
                "reasoningTokens": 0,
            },
            "window": 100,
            "cost": {"amount": 0.25, "total": 1.5, "currency": "EUR"},
        },
    ),
    (f.ErrorRecorded(1, "x", "BUG"), "error", {"turn": 1, "message": "x", "code": "BUG"}),
    (
        f.ErrorRecorded(1, "x", "PROVIDER", "auth"),
        "error",
        {"turn": 1, "message": "x", "code": "PROVIDER", "kind": "auth"},
    ),
    (
        f.RequestRetried(1, 2, 3, "server", "it failed", 250, True),
        "request/retried",
        {
            "turn": 1,
            "step": 2,
            "attempt": 3,
            "kind": "server",
            "message": "it failed",
            "delayMs": 250,
            "shown": True,
        },
    ),
    (f.SessionTitle("Roof", "user"), "session/title", {"title": "Roof", "by": "user"}),
    (f.SessionMode("plan"), "session/mode", {"mode": "plan"}),
    (f.SessionModel("a/b"), "session/model", {"model": "a/b"}),
    (f.SessionModel("a/b", "high"), "session/model", {"model": "a/b", "thought": "high"}),
    (
        f.PluginFact("p", "k", (1, None)),
        "plugin/fact",
        {"plugin": "p", "kind": "k", "data": [1, None], "ignorable": True},
    ),
]

CHUNK_SPELLINGS: list[tuple[Chunk, dict[str, Any]]] = [
    (TextDelta(0, "a"), {"type": "text-delta", "index": 0, "text": "a"}),
    (ReasoningDelta(1, "a"), {"type": "reasoning-delta", "index": 1, "text": "a"}),
    (
        ToolCallDelta(2, "c1", "read", "{"),
        {"type": "tool-call-delta", "index": 2, "id": "c1", "name": "read", "arguments": "{"},
    ),
    (BlockStart(0, "text"), {"type": "block-start", "index": 0, "kind": "text"}),
    (BlockEnd(0), {"type": "block-end", "index": 0}),
    (BlockEnd(0, Text("a")), {"type": "block-end", "index": 0, "block": {"type": "text", "text": "a"}}),
    (
        UsageChunk(Usage(1, 2)),
        {
            "type": "usage",
            "usage": {
                "inputTokens": 1,
                "outputTokens": 2,
                "cacheReadTokens": 0,
                "cacheWriteTokens": 0,
                "reasoningTokens": 0,
            },
        },
    ),
    (Finish("stop"), {"type": "finish", "kind": "stop"}),
    (
        Finish("error", "cut off", "transport"),
        {"type": "finish", "kind": "error", "message": "cut off", "errorKind": "transport"},
    ),
]


RUN_DATA: dict[str, Any] = {
    "turn": 1,
    "step": 2,
    "attempt": 3,
    "index": 4,
    "kind": "reasoning",
    "texts": ["a", "b"],
    "dt_ms": [0, 15],
}
RUN = {"seq": 7, "time": 100, "type": "assistant/run", "data": RUN_DATA}


@pytest.mark.parametrize(
    ("fact", "kind", "data"), SPELLINGS, ids=lambda it: it if isinstance(it, str) else ""
)
def test_each_fact_has_one_spelling(fact: f.LoggedFact, kind: str, data: dict[str, Any]) -> None:
    """Contract 1: `{seq, time, type, data}`; change one only with a reason."""
    row = {"seq": 4, "time": 1_700_000_000_000, "type": kind, "data": data}

    assert fact_to_json(placed(fact, 4, 1_700_000_000_000)) == row
    assert fact_to_json(fact_from_json(row)) == row


@pytest.mark.parametrize(("chunk", "row"), CHUNK_SPELLINGS, ids=lambda it: type(it).__name__)
def test_each_chunk_has_one_spelling(chunk: Chunk, row: dict[str, Any]) -> None:
    """Contract 1: chunks are stored verbatim inside their facts."""
    assert chunk_to_json(chunk) == row
    assert chunk_from_json(row) == chunk


def test_the_spellings_leave_no_fact_and_no_chunk_out() -> None:
    """Our promise: a fact added to the union is spelled here and drawn by the strategies."""
    assert {type(fact) for fact, _, _ in SPELLINGS} == set(get_args(f.LoggedFact)) == set(STRATEGIES)
    assert {type(chunk) for chunk, _ in CHUNK_SPELLINGS} == set(get_args(Chunk))


@given(any_fact, st.integers(0, 2**53), st.integers(0, 2**53))
@unhurried
def test_every_fact_survives_a_file(fact: f.LoggedFact, seq: int, time: int) -> None:
    """Spec loop 8.13: byte-identical round trip."""
    line = orjson.dumps(fact_to_json(placed(fact, seq, time)))

    again = fact_from_json(json.loads(line))

    assert orjson.dumps(fact_to_json(again)) == line
    assert (type(again), again.seq, again.time) == (type(fact), seq, time)


@given(drawn_chunks)
@unhurried
def test_every_chunk_survives_a_file(chunk: Chunk) -> None:
    """Contract 1: chunks are stored losslessly."""
    line = orjson.dumps(chunk_to_json(chunk))

    again = chunk_from_json(json.loads(line))

    assert orjson.dumps(chunk_to_json(again)) == line
    assert type(again) is type(chunk)


@given(runs, st.integers(0, 2**31))
@unhurried
def test_every_run_survives_a_file(run: f.AssistantRun, seq: int) -> None:
    """Contract 1: a run stands for its chunk facts losslessly."""
    run.seq = seq
    line = orjson.dumps(row_to_json(run))

    again = row_from_json(json.loads(line))

    assert isinstance(again, f.AssistantRun)
    assert orjson.dumps(row_to_json(again)) == line
    assert again.last_time == run.last_time
    assert [fact_to_json(fact) for fact in again.facts_from(0)] == [
        fact_to_json(fact) for fact in run.facts_from(0)
    ]


def test_a_run_has_one_spelling() -> None:
    """Contract 1: `{seq, time, turn, step, attempt, index, kind, texts, dt_ms}`."""
    run = row_from_json(RUN)

    assert row_to_json(run) == RUN
    assert isinstance(run, f.AssistantRun)
    assert [fact_to_json(fact) for fact in run.facts_from(8)] == [
        {
            "seq": 8,
            "time": 115,
            "type": "assistant/chunk",
            "data": {
                "turn": 1,
                "step": 2,
                "attempt": 3,
                "chunk": {"type": "reasoning-delta", "index": 4, "text": "b"},
            },
        }
    ]


@given(any_fact)
@unhurried
def test_what_is_no_run_is_the_row_of_its_fact(fact: f.LoggedFact) -> None:
    """Our promise: one reader for every row of a log."""
    row = row_to_json(placed(fact, 1, 2))

    assert row == fact_to_json(fact)
    assert row_to_json(row_from_json(row)) == row


@pytest.mark.parametrize(
    "change",
    [
        {"seq": None},
        {"seq": True},
        {"time": 1.5},
        {"data": None},
        {"data": {}},
        {"data": {**RUN_DATA, "kind": "song"}},
        {"data": {**RUN_DATA, "texts": []}},
        {"data": {**RUN_DATA, "texts": [], "dt_ms": []}},
        {"data": {**RUN_DATA, "texts": None}},
        {"data": {**RUN_DATA, "dt_ms": [0, "5"]}},
        {"type": "no/such"},
    ],
    ids=str,
)
def test_a_broken_run_is_refused(change: dict[str, Any]) -> None:
    """Our promise: reading is strict; the store decides what a broken row means."""
    with pytest.raises(ValueError, match=r"^not a fact"):
        row_from_json({**RUN, **change})


def test_open_payloads_come_back_frozen() -> None:
    """Contract 1: open payloads are frozen; a loaded log is no softer than a live one."""
    row = {"seq": 0, "time": 0, "type": "plugin/fact"}
    row["data"] = {"plugin": "p", "kind": "k", "data": {"a": [1]}, "ignorable": True}

    fact = fact_from_json(row)

    assert isinstance(fact, f.PluginFact)
    with pytest.raises(TypeError):
        fact.data["a"] = 2


STEP = {"seq": 0, "time": 0, "type": "step/start", "data": {"turn": 1, "step": 1}}


@pytest.mark.parametrize(
    "row",
    [
        None,
        [],
        "row",
        {},
        {**STEP, "type": "no/such"},
        {**STEP, "type": ["step/start"]},
        {**STEP, "type": None},
        {**STEP, "data": None},
        {**STEP, "data": []},
        {**STEP, "data": {"turn": 1}},
        {key: value for key, value in STEP.items() if key != "seq"},
        {key: value for key, value in STEP.items() if key != "time"},
        {**STEP, "seq": "0"},
        {**STEP, "seq": True},
        {**STEP, "seq": 0.0},
        {**STEP, "time": None},
        {**STEP, "type": "turn/end", "data": {"turn": 1, "reason": None}},
        {**STEP, "type": "session/mode", "data": {"mode": "yolo"}},
        {**STEP, "type": "turn/start", "data": {"turn": 1, "trigger": {}, "messageIds": []}},
        {
            **STEP,
            "type": "assistant/chunk",
            "data": {"turn": 1, "step": 1, "attempt": 1, "chunk": {"type": "song"}},
        },
        {
            **STEP,
            "type": "user/message",
            "data": {"turn": 1, "id": "m", "content": [{"type": "song"}], "source": {}},
        },
        {
            **STEP,
            "type": "plugin/fact",
            "data": {"plugin": "p", "kind": "k", "data": float("nan")},
        },
    ],
    ids=lambda it: ascii(it)[:60],
)
def test_a_broken_row_is_refused(row: Any) -> None:
    """Our promise: reading is strict; the store decides what a broken row means."""
    with pytest.raises(ValueError, match=r"^not a fact"):
        fact_from_json(row)


@given(st.sampled_from(SPELLINGS), st.data())
@unhurried
def test_a_row_that_lost_any_of_its_data_is_refused_or_still_whole(
    spelling: tuple[f.LoggedFact, str, dict[str, Any]], data: st.DataObject
) -> None:
    """Our promise: nothing but a ValueError leaves the reader, whatever is missing."""
    original, kind, whole = spelling
    lost = data.draw(st.sampled_from(sorted(whole)))
    row = {"seq": 0, "time": 0, "type": kind, "data": {k: v for k, v in whole.items() if k != lost}}

    try:
        fact = fact_from_json(row)
    except ValueError:
        return
    assert type(fact) is type(original)


def test_a_row_of_a_later_version_that_may_be_ignored_keeps_its_place() -> None:
    """Contract 1: the `ignorable` marker lets an older version read a newer log."""
    row = {"seq": 3, "time": 1, "type": "session/rainbow", "data": {"colour": "red", "ignorable": True}}

    fact = fact_from_json(row)

    assert isinstance(fact, f.PluginFact)
    assert (fact.seq, fact.plugin, fact.kind) == (3, "", "session/rainbow")
    assert thaw_json(fact.data) == row["data"]


@pytest.mark.parametrize("data", [{}, {"ignorable": False}, {"ignorable": "yes"}, None])
def test_a_row_of_a_later_version_that_matters_is_refused(data: object) -> None:
    """Contract 1: the union is closed; what is not said to be ignorable is not ignored."""
    with pytest.raises(ValueError, match="not a fact of format"):
        fact_from_json({"seq": 3, "time": 1, "type": "session/rainbow", "data": data})


def test_a_thought_level_nobody_knows_is_refused() -> None:
    """Contracts 1: what a log says is held against what it may say, before anything is built on it."""
    row = {"seq": 0, "time": 1, "type": "session/model", "data": {"model": "a/b", "thought": "deep"}}
    with pytest.raises(ValueError, match="unknown thought level"):
        fact_from_json(row)


def test_a_mode_nobody_knows_is_refused() -> None:
    """Contract 12: what lets things happen unasked is never taken for granted."""
    with pytest.raises(ValueError, match="unknown mode"):
        fact_from_json({"seq": 0, "time": 1, "type": "session/mode", "data": {"mode": "yolo"}})
