"""The harness itself can be trusted: it plays honest goldens and catches each kind of fault.

A stand-in agent (`stand_in_agent`) takes the server's place, honest or broken in one named way.
"""

import json
import sys
from pathlib import Path

import pytest

from tests.doubles.editor import EditorError
from tests.goldens.golden import Golden, GoldenError, Json
from tests.goldens.runner import Outcome, run_golden
from tests.goldens.verdict import faults_of, then_files

STAND_IN = Path(__file__).with_name("stand_in_agent.py")
HELLO: list[Json] = [
    {"send": "initialize", "params": {"protocolVersion": 1}},
    {"send": "session/new", "params": {"cwd": "$cwd", "mcpServers": []}, "as": "new"},
]
PROMPT: Json = {"sessionId": "$new.sessionId", "prompt": [{"type": "text", "text": "Hi"}]}
SEND: Json = {"send": "session/prompt", "params": PROMPT, "as": "p1"}
DONE: Json = {"wait": {"response": "p1"}}
CANCEL: Json = {"notify": "session/cancel", "params": {"sessionId": "$new.sessionId"}}
SPEAKS: Json = {
    "session": 1,
    "do": [{"text": "Hel"}, {"text": "lo"}, {"tool": "read", "id": "c1"}, {"finish": "stop"}],
}


def golden_of(root: Path, script: list[Json], steps: list[Json], note: str = "") -> Golden:
    return Golden(root / "golden", ("what", "who", note), script, [*HELLO, *steps], {})


def run(golden: Golden, root: Path, fault: str = "", timeout_s: float = 5.0) -> Outcome:
    server = [sys.executable, str(STAND_IN), *(["--fault", fault] if fault else [])]
    return run_golden(golden, root / "run", server, timeout_s)


def test_an_honest_agent_passes_and_its_record_holds_no_volatile_value(tmp_path: Path) -> None:
    """Our promise: ids, places, versions and times are normalised; keys are sorted, one frame a line."""
    golden = golden_of(tmp_path, [SPEAKS], [SEND, DONE])

    outcome = run(golden, tmp_path)

    assert faults_of(golden, outcome) == []
    files = then_files(golden, outcome)
    assert files.keys() == {"transcript.jsonl", "session.jsonl"}
    rows = [json.loads(line) for line in files["transcript.jsonl"].splitlines()]
    assert [row["from"] for row in rows] == ["editor", "agent"] * 2 + ["editor"] + ["agent"] * 5
    assert rows[1]["frame"]["result"]["agentInfo"]["version"] == "<version>"
    assert rows[2]["frame"]["params"]["cwd"] == "<cwd>"
    assert rows[3]["frame"] == {"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "<s1>"}}
    assert json.loads(files["session.jsonl"].splitlines()[0])["time"] == 0


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("late-update", "comes outside any prompt (check 1)"),
        ("unfinished-card", "tool call c1 is pending (check 2)"),
        ("unannounced-card", "call c1, which was never announced (check 3)"),
        ("mute-afterwards", "waited in vain for the response"),
        ("answers-twice", "is answered twice"),
        ("junk", "no JSON-RPC object: b'Welcome!"),
        ("chatter", "the server wrote to stderr: warming up"),
        ("misspelt", "update.mesageId: unknown name"),
        ("forgetful", "is replayed as"),
        ("unknown-tool", "called a tool that does not exist"),
    ],
)
def test_a_fault_of_the_agent_fails_the_golden(tmp_path: Path, fault: str, words: str) -> None:
    """The four standing checks, stdout purity, the schema, live = replay, and codes nobody asked for."""
    golden = golden_of(tmp_path, [SPEAKS], [SEND, DONE])

    try:
        found = "\n".join(faults_of(golden, run(golden, tmp_path, fault, timeout_s=1.0)))
    except EditorError as error:
        found = str(error)

    assert words in found


def test_what_the_note_allows_does_not_fail_the_golden(tmp_path: Path) -> None:
    """Our promise: only what a golden did not ask for fails it."""
    golden = golden_of(tmp_path, [SPEAKS], [SEND, DONE], note="on purpose; allows: stderr, unknown-tool")

    assert faults_of(golden, run(golden, tmp_path, "chatter")) == []


def test_unused_lines_of_the_script_fail_the_golden(tmp_path: Path) -> None:
    """Our promise: an unused script fails loudly."""
    golden = golden_of(tmp_path, [SPEAKS, {"session": 1, "do": [{"text": "never"}]}], [SEND, DONE])

    assert 'never asked for line 2: {"session": 1' in "\n".join(faults_of(golden, run(golden, tmp_path)))


def test_an_exhausted_script_fails_the_very_next_wait(tmp_path: Path) -> None:
    """Our promise: an exhausted script fails loudly."""
    with pytest.raises(EditorError, match="the script has no line left for session 1"):
        run(golden_of(tmp_path, [], [SEND, DONE]), tmp_path)


def test_a_frame_is_written_only_once_the_model_is_held(tmp_path: Path) -> None:
    """Our promise: a client frame while the model emits would be a race, so it waits for the hold."""
    script: list[Json] = [{"do": [{"text": "1"}, {"text": "2"}, {"hold": "go"}, {"text": "3"}]}]
    golden = golden_of(tmp_path, script, [SEND, CANCEL, DONE])

    outcome = run(golden, tmp_path)

    assert faults_of(golden, outcome) == []
    spoken = [line.update.get("content", line.method) for line in outcome.transcript[5 : outcome.shown]]
    texts: list[object] = [{"type": "text", "text": "1"}, {"type": "text", "text": "2"}]
    assert spoken == [*texts, "session/cancel", None]


def test_a_frame_that_can_only_race_is_refused(tmp_path: Path) -> None:
    """Our promise: the harness says so."""
    golden = golden_of(tmp_path, [SPEAKS], [SEND, CANCEL, DONE])

    with pytest.raises(GoldenError, match="was answered, yet no step waits for its response"):
        run(golden, tmp_path)


def test_a_release_waits_for_its_hold_and_sessions_keep_their_lines(tmp_path: Path) -> None:
    """Our promise: `session: n` is the nth id made, however the sessions' calls interleave."""
    other = {"sessionId": "$other.sessionId", "prompt": PROMPT["prompt"]}
    steps: list[Json] = [
        {"send": "session/new", "params": {"cwd": "$cwd", "mcpServers": []}, "as": "other"},
        {"send": "session/prompt", "params": other, "as": "p2"},
        SEND,
        {"release": "two"},
        {"wait": {"response": "p2"}},
        {"release": "one"},
        {"wait": {"update": {"content": {"text": "first"}}, "session": "$new"}},
        DONE,
    ]
    script: list[Json] = [
        {"session": 1, "do": [{"hold": "one"}, {"text": "first"}]},
        {"session": 2, "do": [{"hold": "two"}, {"text": "second"}]},
    ]
    golden = golden_of(tmp_path, script, steps)

    outcome = run(golden, tmp_path)

    assert faults_of(golden, outcome) == []
    updates = [line for line in outcome.transcript if line.method == "session/update"][:2]
    assert [(line.session, line.update["content"]["text"]) for line in updates] == [
        (outcome.sessions[1], "second"),
        (outcome.sessions[0], "first"),
    ]
    assert then_files(golden, outcome).keys() == {"transcript.jsonl", "session-1.jsonl", "session-2.jsonl"}


def test_a_restart_keeps_numbers_and_lines_and_kill_is_told(tmp_path: Path) -> None:
    """Our promise: the harness keeps the numbering across restarts."""
    load: Json = {
        "send": "session/load",
        "params": {"sessionId": "$new.sessionId", "cwd": "$cwd", "mcpServers": []},
    }
    again: Json = {**SEND, "as": "p2"}
    steps: list[Json] = [SEND, DONE, {"kill": True}, {"exit": -9}, {"restart": True}, HELLO[0], load, again]
    script: list[Json] = [SPEAKS, {"do": [{"hang": True}]}]
    golden = golden_of(
        tmp_path, script, [*steps, CANCEL, {"wait": {"response": "p2"}}, {"eof": True}, {"exit": 0}]
    )

    outcome = run(golden, tmp_path)

    assert faults_of(golden, outcome) == []
    events = [line.event["event"] for line in outcome.transcript if line.event]
    assert events == ["signal", "exit", "eof", "exit"]


def test_a_wait_in_vain_shows_the_transcript_and_stderr(tmp_path: Path) -> None:
    """Our promise: all waits are bounded, with a message that shows the transcript so far and stderr."""
    golden = golden_of(tmp_path, [SPEAKS], [SEND, {"wait": {"update": {"sessionUpdate": "plan"}}}])

    with pytest.raises(EditorError) as caught:
        run(golden, tmp_path, "chatter", timeout_s=0.5)

    message = str(caught.value)
    assert "waited in vain for an update like" in message
    assert '"text": "lo"' in message
    assert "warming up" in message
