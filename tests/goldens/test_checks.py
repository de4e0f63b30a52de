"""The pure parts of the harness: unfolding, projection, names, settings, references, the schema."""

import tomllib
from pathlib import Path

import pytest

from tests.doubles.transcript import Line, matches
from tests.goldens.golden import GoldenError, Json
from tests.goldens.history import history_faults
from tests.goldens.normalise import Normaliser
from tests.goldens.places import as_toml, overlaid
from tests.goldens.references import References
from tests.goldens.replay import replay_faults
from tests.goldens.schema import schema_faults
from tests.goldens.stored import unfold

MESSAGE = "8d0c3a52-70d6-4a3c-9f0e-6c1b2b7f3a11"


def chunk(text: str, message: str = "t1.s1.a1.message") -> Json:
    content = {"type": "text", "text": text}
    return {"sessionUpdate": "agent_message_chunk", "messageId": message, "content": content}


def card(kind: str, **fields: object) -> Json:
    return {"sessionUpdate": kind, "toolCallId": "c1", **fields}


def test_a_packed_run_is_unfolded_to_the_chunks_it_stands_for() -> None:
    """Our promise: packing on disk never changes a golden."""
    place = {"turn": 1, "step": 2, "attempt": 1}
    run = {**place, "index": 0, "kind": "reasoning", "texts": ["a", "b"], "dt_ms": [0, 5]}

    facts = list(unfold({"seq": 7, "time": 100, "type": "assistant/run", "data": run}))

    assert [(fact["seq"], fact["type"], fact["data"]) for fact in facts] == [
        (7, "assistant/chunk", {**place, "chunk": {"type": "reasoning-delta", "index": 0, "text": "a"}}),
        (8, "assistant/chunk", {**place, "chunk": {"type": "reasoning-delta", "index": 0, "text": "b"}}),
    ]


def test_a_replay_may_join_chunks_and_cards_and_leave_out_live_output() -> None:
    """Our promise: live = replay after joining chunks of one messageId, without live-only updates."""
    output = [{"type": "content", "content": {"type": "text", "text": "so far"}}]
    live = [
        chunk("Hel"),
        card("tool_call", title="Run", status="pending"),
        card("tool_call_update", status="in_progress"),
        card("tool_call_update", status="in_progress", content=output),
        card("tool_call_update", status="completed"),
        chunk("lo"),
        {"sessionUpdate": "usage_update", "used": 1, "size": 2},
    ]
    user = {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "Hi"}}
    replayed = [user, chunk("Hello"), card("tool_call", title="Run", status="completed")]

    assert list(replay_faults(live, replayed)) == []


def test_a_terminal_may_be_told_in_pieces_and_in_one() -> None:
    """Our promise: live increments and the whole on replay are the same terminal."""

    def told(data: str) -> Json:
        return {"terminal_output": {"terminal_id": "c1", "data": data}}

    ended = {"terminal_exit": {"terminal_id": "c1", "exit_code": 0}}
    first = card("tool_call", title="Run")
    live = [first, card("tool_call_update", _meta=told("a")), card("tool_call_update", _meta=told("b") | ended)]
    whole = card("tool_call_update", _meta=told("ab") | ended)

    assert list(replay_faults(live, [first, whole])) == []
    assert list(replay_faults(live, [first, card("tool_call_update", _meta=told("a") | ended)]))
    assert list(replay_faults(live, [first, card("tool_call_update", _meta=told("ab"))]))


def test_a_terminal_of_the_editors_own_is_not_looked_for_on_replay() -> None:
    """ACP, terminals: a released one is gone; what the card says besides is compared."""
    text = {"type": "content", "content": {"type": "text", "text": "out"}}
    live = [
        card("tool_call", title="Run"),
        card("tool_call_update", status="completed", content=[{"type": "terminal", "terminalId": "term-1"}]),
    ]

    assert list(replay_faults(live, [card("tool_call", title="Run", status="completed", content=[text])])) == []
    assert list(replay_faults(live, [card("tool_call", title="Run", status="failed", content=[text])]))


@pytest.mark.parametrize(
    "replayed",
    [
        [],
        [chunk("Hel", "other"), card("tool_call", title="Run", status="completed")],
        [card("tool_call", title="Run", status="completed"), chunk("Hel")],
        [chunk("Hel"), card("tool_call", title="Run", status="failed")],
        [chunk("Hel"), card("tool_call", title="Run", status="completed"), chunk("more", "later")],
    ],
)
def test_a_replay_that_shows_something_else_is_a_fault(replayed: list[Json]) -> None:
    """Our promise: nothing else may differ: text, order, status, ids."""
    live = [chunk("Hel"), card("tool_call", title="Run"), card("tool_call_update", status="completed")]

    assert list(replay_faults(live, replayed))


def test_one_value_has_one_name_in_transcript_and_facts(tmp_path: Path) -> None:
    """Our promise: the list of what is normalised."""
    normal = Normaliser(["sid-a"], tmp_path / "project", tmp_path / "state")
    update = {"sessionId": "sid-a", "update": {"messageId": MESSAGE, "text": f"in {tmp_path}/project/a.txt"}}

    rows = normal.transcript(
        [
            Line("editor", frame={"id": "7", "method": "initialize"}),
            Line("agent", frame={"id": "7", "result": {"agentInfo": {"name": "a", "version": "3.1"}}}),
            Line("agent", frame={"method": "session/update", "params": update}),
            Line("agent", frame={"id": "x-99", "method": "session/request_permission", "params": {}}),
            Line("editor", frame={"id": "x-99", "result": {}}),
        ]
    )

    assert [row["frame"].get("id") for row in rows] == ["7", "7", None, 1, 1]
    assert rows[1]["frame"]["result"]["agentInfo"] == {"name": "a", "version": "<version>"}
    named = {"sessionId": "<s1>", "update": {"messageId": "<m1>", "text": "in <cwd>/a.txt"}}
    assert rows[2]["frame"]["params"] == named
    fact = {"seq": 0, "time": 1700000000000, "type": "turn/start", "data": {"messageIds": [MESSAGE]}}
    assert normal.facts([fact]) == [
        {"seq": 0, "time": 0, "type": "turn/start", "data": {"messageIds": ["<m1>"]}}
    ]


def test_settings_of_a_golden_are_laid_over_ours_and_read_back_alike() -> None:
    """Our promise: config.toml merges given/settings.toml."""
    ours = {"format": 1, "agent": {"model": "scripted/script"}}
    golden = {"agent": {"max_steps": 2, "note": 'a "quoted" ü\n'}, "agents": [{"id": "x", "on": True}]}

    merged = overlaid(ours, golden)

    assert tomllib.loads(as_toml(merged)) == merged
    assert merged["agent"] == {"model": "scripted/script", "max_steps": 2, "note": 'a "quoted" ü\n'}


def test_references_stand_for_values_and_a_wrong_one_is_refused() -> None:
    """Our promise: `$new.sessionId`; a slip must not be sent as text."""
    names = References("/here", lambda request: {"sessionId": "sid"} if request == 1 else None)
    names.requests["new"] = 1
    names.asked["ask"] = {"id": 0, "params": {"options": [{"optionId": "yes"}]}}

    assert names.resolve(
        ["$new.sessionId", "$id.new", "$cwd/a.txt", "cost $5", "$ask.options.0.optionId"]
    ) == [
        "sid",
        1,
        "/here/a.txt",
        "cost $5",
        "yes",
    ]
    for wrong in ("$nwe.sessionId", "$new.sesionId", "$ask.options.7"):
        with pytest.raises(GoldenError):
            names.resolve(wrong)


def test_patterns_match_named_keys_only_and_tell_types_apart() -> None:
    """Our promise: an update is waited for by a part of it."""
    assert matches({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": 3})
    assert not matches({"a": 1}, {"a": True})
    assert not matches({"a": [1]}, {"a": [1, 2]})


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (Line("agent", frame={"method": "session/updates", "params": {}}), "no such method"),
        (Line("agent", frame={"id": 1, "method": "session/update", "params": {}}), "must not carry an id"),
        (Line("agent", frame={"id": 1, "result": {"stopReason": "error"}}), "stopReason"),
        (
            Line("agent", frame={"id": 1, "result": {"stopReason": "end_turn", "reason": 1}}),
            "reason: unknown name",
        ),
        (Line("agent", frame={"id": 1, "error": {"code": "x", "message": "m"}}), "code"),
        (Line("agent", frame={"id": 1, "result": {}, "error": {}}), "either a result or an error"),
    ],
)
def test_a_frame_the_protocol_does_not_know_is_a_fault(line: Line, words: str) -> None:
    """Our promise: per-method schema checks, optional names included."""
    params = {"sessionId": "s", "prompt": [{"type": "text", "text": "Hi"}]}
    asked = Line("editor", frame={"id": 1, "method": "session/prompt", "params": params})

    assert words in "\n".join(schema_faults([asked, line]))


def test_extensions_and_frames_refused_on_purpose_are_not_checked() -> None:
    """Our promise: `_` methods are ours; a bad frame is told by the agent's own refusal."""
    wrong = Line("editor", frame={"id": 1, "method": "session/new", "params": {"cwd": 5}})
    refusal = Line("agent", frame={"id": 1, "error": {"code": -32602, "message": "cwd"}})
    own = Line("agent", frame={"method": "_agent_loop/event", "params": {"any": "thing"}})

    assert schema_faults([wrong, refusal, own]) == []


def facts_of(*said: tuple[str, Json]) -> list[Json]:
    rows = [("turn/start", {"trigger": {"kind": "message", "source": {}}, "messageIds": ["m"]}), *said]
    return [
        {"seq": seq, "time": 0, "type": kind, "data": {"turn": 1, **data}}
        for seq, (kind, data) in enumerate(rows)
    ]


CALLED = {"type": "tool-call", "id": "c1", "name": "read", "arguments": "{}"}
ANSWER = {"step": 1, "attempt": 1, "interrupted": False, "content": [CALLED]}
RESULT = {"step": 1, "callId": "c1", "content": [], "isError": False, "outcome": "ran", "card": None}


def test_a_call_without_its_result_is_a_history_no_provider_takes() -> None:
    """Scenarios, standing check: no history makes the next request fail; from here on for both formats."""
    whole = facts_of(
        ("user/message", {"id": "m", "content": [{"type": "text", "text": "Hi"}], "source": {}}),
        ("assistant/message", ANSWER),
        ("tool/result", RESULT),
        ("turn/end", {"reason": {"kind": "completed"}}),
    )
    without = [row for row in whole if row["type"] != "tool/result"]

    assert list(history_faults(whole)) == []
    assert [fault.split(":")[0] for fault in history_faults(without)] == [
        f"{name} would refuse the request of the next prompt" for name in ("OpenAI", "Anthropic")
    ]
    assert list(history_faults(without[:-1])) == []
