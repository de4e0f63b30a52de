"""The projector: pure, valid, and the same for what happens and for what is replayed."""

import copy
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from acp import schema
from hypothesis import given
from hypothesis import strategies as st

from acp_server.codec.bounds import FIELD_LIMIT_BYTES
from acp_server.codec.chunk_line import ChunkLine, update_message
from acp_server.codec.update_out import (
    SURELY_SHORT,
    chunk_updates,
    join_runs,
    output_update,
    stopped_call,
    updates_of,
)
from agent_loop import AssistantChunk, LoggedFact, ReasoningDelta, TextDelta, ToolOutput
from agent_loop.cards import Card, CardOutput, CardText
from agent_loop.chunks import Usage
from agent_loop.events import facts as f
from agent_loop.events.facts import Exit
from agent_loop.events.facts_json import fact_to_json
from agent_loop.messages import Text
from agent_loop.record import replace
from tests.doubles.facts import any_fact, drawn_chunks, placed_facts, runs, texts
from tests.goldens.replay import replay_faults

small = st.integers(1, 2)
deltas = st.builds(TextDelta, st.integers(0, 1), texts) | st.builds(ReasoningDelta, st.integers(0, 1), texts)
chunk_facts = st.builds(AssistantChunk, small, small, small, deltas | drawn_chunks)
logs = st.lists(chunk_facts | any_fact, max_size=30).map(placed_facts)


def project(facts: Sequence[LoggedFact], *, replay: bool = False) -> list[dict[str, Any]]:
    return [update for fact in facts for update in updates_of(fact, replay=replay)]


@given(any_fact.map(lambda fact: placed_facts([fact])[0]), st.booleans())
def test_every_update_is_one_the_protocol_knows(fact: LoggedFact, replay: bool) -> None:
    """ACP, schema SessionUpdate: a closed union; an unknown value is never sent."""
    for update in updates_of(fact, replay=replay):
        schema.SessionNotification.model_validate({"sessionId": "s", "update": update})


@given(logs)
def test_a_replay_shows_what_was_shown_live(facts: list[LoggedFact]) -> None:
    """Contracts 3: replay = project(join_runs(facts)); pieces of one message are joined, nothing else."""
    live = project(facts)
    replayed = project(list(join_runs(facts)), replay=True)

    assert list(replay_faults(live, replayed)) == []


@given(logs)
def test_joining_keeps_the_order_of_everything_it_does_not_join(facts: list[LoggedFact]) -> None:
    """Contracts 3: only neighbours of one message are joined, so no text moves past a card."""

    def folded(updates: list[dict[str, Any]]) -> list[Any]:
        seen: list[Any] = []
        for update in updates:
            key = (update["sessionUpdate"], update.get("messageId"))
            if "chunk" in key[0] and seen and seen[-1][0] == key:
                seen[-1] = (key, seen[-1][1] + update["content"]["text"])
            elif "chunk" in key[0]:
                seen.append((key, update["content"]["text"]))
            else:
                seen.append((key, update))
        return seen

    assert folded(project(list(join_runs(facts)))) == folded(project(facts))


@given(logs, runs, logs)
def test_a_run_is_replayed_as_the_deltas_it_stands_for(
    before: list[LoggedFact], run: f.AssistantRun, behind: list[LoggedFact]
) -> None:
    """Contract 1: folding in memory or packing on disk never shows."""
    packed = project(list(join_runs([*before, run, *behind])), replay=True)

    assert packed == project(list(join_runs([*before, *run.facts_from(0), *behind])), replay=True)


@given(logs)
def test_projecting_changes_nothing_and_gives_the_same_again(facts: list[LoggedFact]) -> None:
    """Seed, properties.spec: pure, the same facts give the same updates."""
    facts = list(placed_facts(facts))
    before = copy.deepcopy([fact_to_json(fact) for fact in facts])

    once, twice = project(list(join_runs(facts))), project(list(join_runs(facts)))

    assert once == twice
    assert [fact_to_json(fact) for fact in facts] == before


def test_a_run_is_joined_up_to_the_field_limit_and_no_update_is_longer() -> None:
    """Contracts 3: joined up to 32 KiB per update, then split on a character."""
    one = [AssistantChunk(1, 1, 1, TextDelta(0, "漢" * 1000)) for _ in range(100)]

    updates = project(list(join_runs(one)))

    sizes = [len(update["content"]["text"].encode()) for update in updates]
    assert max(sizes) <= FIELD_LIMIT_BYTES
    assert len(updates) < 20
    assert sum(sizes) == 300_000


def test_one_huge_delta_is_split_and_loses_nothing() -> None:
    """Scenario B02: no single update above 64 KiB, and message text is never cut."""
    text = "é" * 100_000

    updates = chunk_updates(AssistantChunk(1, 1, 1, TextDelta(0, text)))

    assert "".join(update["content"]["text"] for update in updates) == text
    assert all(len(update["content"]["text"].encode()) <= FIELD_LIMIT_BYTES for update in updates)


def test_message_ids_tell_turn_step_attempt_and_kind() -> None:
    """Contracts 1: the same live, replayed and after a restart."""
    said = chunk_updates(AssistantChunk(2, 3, 4, TextDelta(0, "x")))
    thought = chunk_updates(AssistantChunk(2, 3, 4, ReasoningDelta(0, "x")))

    assert (said[0]["messageId"], thought[0]["messageId"]) == ("t2.s3.a4.message", "t2.s3.a4.thought")


def test_an_empty_delta_shows_nothing() -> None:
    """Our promise: no update that changes nothing."""
    assert chunk_updates(AssistantChunk(1, 1, 1, TextDelta(0, ""))) == []


def test_what_the_person_typed_is_told_on_replay_only() -> None:
    """ACP, loading sessions; live, the editor shows it itself."""
    facts: list[LoggedFact] = [
        f.UserMessage(1, "m1", (Text("hi"), Text("x" * (FIELD_LIMIT_BYTES + 1))), {"kind": "user"}),
        f.SteeringMessage(1, "m2", (Text("more"),), {"kind": "user"}),
    ]

    assert project(facts) == []
    replayed = project(facts, replay=True)
    assert [(u["messageId"], len(u["content"]["text"])) for u in replayed] == [
        ("m1", 2),
        ("m1", FIELD_LIMIT_BYTES),
        ("m1", 1),
        ("m2", 4),
    ]


def test_a_call_without_a_card_is_shown_nowhere() -> None:
    """Contracts 1: a card is None when nobody was or will be shown it."""
    assert updates_of(f.ToolCall(1, 1, "c1", "read", "{}", None)) == []
    assert updates_of(f.ToolResult(1, 1, "c1", (), False, "ran")) == []


def test_a_call_goes_from_pending_to_in_progress_to_its_end() -> None:
    """ACP, tool calls: in_progress once it runs, a final update with content."""
    card = Card("read", "a.txt", (CardText("x"),))

    call = updates_of(f.ToolCall(1, 1, "c1", "read", "{}", card))
    started = updates_of(f.ToolStarted(1, 1, "c1"))
    ended = updates_of(f.ToolResult(1, 1, "c1", (), False, "ran", card=card.with_status("done")))
    silent = updates_of(f.ToolResult(1, 1, "c1", (), True, "ran", card=card.with_status("failed", ())))

    assert [update["status"] for update in (*call, *started, *ended, *silent)] == [
        "pending",
        "in_progress",
        "completed",
        "failed",
    ]
    assert call[0]["name"] == "read"
    assert "content" in ended[0]
    assert "content" not in silent[0]


def test_an_interrupted_call_ends_in_the_words_it_ended_in_live() -> None:
    """Contracts 3: `failed`, one fixed sentence, whatever the tool still said."""
    card = Card("execute", "sleep 9", (CardText("half a result"),), status="cancelled")

    [update] = updates_of(f.ToolResult(1, 1, "c1", (), True, "interrupted", card=card))

    assert update == stopped_call("c1")
    assert "half a result" not in str(update)


@pytest.mark.parametrize(
    ("window", "cost", "told"),
    [
        (None, f.Cost(0.5, 2.5, "EUR"), []),
        (1000, None, [{"sessionUpdate": "usage_update", "used": 30, "size": 1000}]),
        (
            1000,
            f.Cost(0.5, 2.5, "EUR"),
            [
                {
                    "sessionUpdate": "usage_update",
                    "used": 30,
                    "size": 1000,
                    "cost": {"amount": 2.5, "currency": "EUR"},
                }
            ],
        ),
    ],
)
def test_context_and_bill_are_told_when_the_window_is_known(
    window: int | None, cost: f.Cost | None, told: list[dict[str, Any]]
) -> None:
    """ACP, prompt turn (usage_update): the last call's context, the session's cost; no guess."""
    fact = f.UsageRecorded(1, 1, Usage(10, 2, 8, 10, 500), window, cost)

    assert project([fact]) == project([fact], replay=True) == told


@pytest.mark.parametrize(
    ("delay_ms", "shown", "words"),
    [
        (0, False, "It failed. Trying again."),
        (999, False, "It failed. Trying again."),
        (1499, False, "It failed. Trying again in 1 s."),
        (
            30_000,
            True,
            "It failed. Trying again in 30 s. What the model said of this answer so far does not count.",
        ),
    ],
)
def test_a_retry_says_why_when_and_what_no_longer_counts(delay_ms: int, shown: bool, words: str) -> None:
    """Issue, retry: text already shown is marked as discarded; the same words on replay."""
    fact = f.RequestRetried(1, 2, 3, "overloaded", "It failed.", delay_ms, shown)

    [told] = project([fact])

    assert told == {
        "sessionUpdate": "agent_thought_chunk",
        "content": {"type": "text", "text": words},
        "messageId": "t1.s2.a3.retry",
    }
    assert project([fact], replay=True) == [told]


def test_live_output_is_bounded_and_fenced() -> None:
    """Scenario B02: a tool prints 5 MB."""
    update = output_update(ToolOutput("s", 1, 1, "c1", "x" * 5_000_000, True))

    assert len(orjson.dumps(update)) < FIELD_LIMIT_BYTES + 500
    assert update["content"][0]["content"]["text"].startswith("```console\n")


SHELL = Card("execute", "make", terminal="/w")


def drawn(fact: LoggedFact, shows: str = "") -> list[dict[str, Any]]:
    return updates_of(fact, drawn={"c1": shows})


def ended(text: str, exit: Exit | None) -> f.ToolResult:
    card = SHELL.with_status("done", (CardOutput(text),))
    return f.ToolResult(1, 1, "c1", (Text(text),), False, "ran", exit=exit, card=card)


def test_a_command_is_a_terminal_for_an_editor_that_draws_one() -> None:
    """Spec loop 5.10: description first, then the terminal; cwd in its info."""
    card = replace(SHELL, body=(CardText("why"),))

    [told] = drawn(f.ToolCall(1, 1, "c1", "run_command", "{}", card))

    assert [item["type"] for item in told["content"]] == ["content", "terminal"]
    assert told["content"][1] == {"type": "terminal", "terminalId": "c1"}
    assert told["_meta"] == {"terminal_info": {"terminal_id": "c1", "cwd": "/w"}}
    [other] = drawn(f.ToolCall(1, 1, "c1", "read", "{}", Card("read", "a.txt")))
    assert "_meta" not in other


@pytest.mark.parametrize(
    ("shows", "exit", "data", "status"),
    [
        ("", Exit(0, None, timed_out=False), "one\ntwo\n", {"exit_code": 0}),
        ("one\n", Exit(None, "SIGTERM", timed_out=True), "two\n", {"signal": "SIGTERM"}),
        ("one\ntwo\n", Exit(3, None, timed_out=False), None, {"exit_code": 3}),
        ("one\nmore of it", None, "two\n", None),
        ("one\ntwo\n", None, None, None),
    ],
)
def test_a_terminal_is_told_the_rest_and_how_it_ended(
    shows: str, exit: Exit | None, data: str | None, status: dict[str, Any] | None
) -> None:
    """Spec loop 5.10: no content, which would take the terminal's place; a signal wins over a code."""
    *_, told = drawn(ended("one\ntwo\n", exit), shows)

    meta = told.get("_meta", {})
    assert told["status"] == "completed"
    assert "content" not in told
    assert meta.get("terminal_output", {}).get("data") == data
    assert meta.get("terminal_exit") == (None if status is None else {"terminal_id": "c1", **status})


@pytest.mark.parametrize("terminals", [None, {}])
def test_how_a_command_ended_is_there_for_programs(terminals: dict[str, str] | None) -> None:
    """Issue "Acting with consent", cards: exit code and signal structured."""
    *_, told = updates_of(ended("", Exit(None, "SIGKILL", timed_out=True)), drawn=terminals)

    assert told["rawOutput"] == {"exitCode": None, "signal": "SIGKILL", "timedOut": True}
    assert "rawOutput" not in updates_of(ended("", None), drawn=terminals)[-1]


def test_a_long_output_is_told_in_pieces() -> None:
    """Contracts 2: a field on the wire is at most 32 KiB."""
    text = "x" * 60_000
    told = drawn(ended(text, Exit(0, None, timed_out=False)))

    assert "".join(it["_meta"]["terminal_output"]["data"] for it in told) == text
    assert all(len(orjson.dumps(it)) < FIELD_LIMIT_BYTES + 500 for it in told)
    assert ["status" in it for it in told] == [False, True]


def test_a_command_that_did_not_run_is_told_in_words() -> None:
    """Spec loop 5.10: without output there is no terminal to end; why it failed is text."""
    refused = SHELL.with_status("failed", (CardText("denied"),))

    [told] = drawn(f.ToolResult(1, 1, "c1", (Text("no"),), True, "denied", card=refused))

    assert (told["content"][0]["content"]["text"], "_meta" in told) == ("denied", False)


@given(st.lists(chunk_facts, max_size=12), st.text(max_size=8))
def test_the_line_of_a_delta_is_the_line_of_its_update(facts: list[AssistantChunk], session: str) -> None:
    """Our promise: encoding the envelope once per message changes no byte."""
    lines = ChunkLine(session)

    for fact in facts:
        line = lines.line(fact)
        if line is not None:
            [update] = chunk_updates(fact)
            assert line == orjson.dumps(update_message(session, update)) + b"\n"
        else:
            assert not isinstance(fact.chunk, TextDelta | ReasoningDelta) or not fact.chunk.text


def test_a_delta_over_the_sure_length_has_no_line_of_its_own() -> None:
    """Contracts 3: what may be over the field limit is split by the projector."""
    lines = ChunkLine("s")

    assert lines.line(AssistantChunk(1, 1, 1, TextDelta(0, "x" * SURELY_SHORT))) is not None
    assert lines.line(AssistantChunk(1, 1, 1, TextDelta(0, "x" * (SURELY_SHORT + 1)))) is None
