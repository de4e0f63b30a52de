"""The demo shows a real conversation, and fails loudly when anything in it is not as it must be."""

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from acp_server import demo as the_demo
from acp_server import demo_editor
from acp_server.demo import LEAVE_S, OUTPUT, PROGRAM, _failures, demo
from acp_server.demo_editor import Leaving
from acp_server.demo_frames import Card, Frames
from acp_server.demo_screen import Screen, wants_colour

Json = dict[str, Any]
UPDATE = "session/update"
ASK = "session/request_permission"
OPTIONS = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]

# An agent that says what `SAYS` holds when it is prompted; its first argument is how it misbehaves.
STAND_IN = """
import json, os, signal, sys, threading
how, says = sys.argv[1], json.loads(sys.argv[2])
def say(frame): print(json.dumps({"jsonrpc": "2.0", **frame}), flush=True)
if how == "stubborn": signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    frame = json.loads(line)
    method = frame.get("method")
    if how == "dies": sys.exit(3)
    if how in ("silent", "stubborn"): continue
    if how == "deaf":
        os.close(0)
        say({"id": frame["id"], "result": {}})
        threading.Event().wait()
    if method == "initialize": say({"id": frame["id"], "result": None})
    if method == "session/new":
        if how == "refuses": say({"id": frame["id"], "error": {"code": -32000, "message": "no model"}})
        else: say({"id": frame["id"], "result": {} if how == "nameless" else {"sessionId": "s"}})
    if method == "session/prompt":
        print("oops", flush=True)
        for said in says: say(said)
        say({"id": frame["id"], "result": {"stopReason": "refusal"}})
if how == "spoilt": say(says[1])
if how == "stays": threading.Event().wait()
if how == "closes":
    os.close(1)
    threading.Event().wait()
sys.exit(5)
"""


def run_stand_in(how: str, says: list[Json] | None = None, wait_s: float = 10.0) -> int:
    return demo([sys.executable, "-c", STAND_IN, how, json.dumps(says or [])], wait_s)


def update(kind: str, /, **fields: Any) -> Json:
    return {"method": UPDATE, "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}}}


def chunk(text: str, kind: str = "agent_message_chunk") -> Json:
    return update(kind, content={"type": "text", "text": text})


def test_the_demo_shows_who_says_what_and_every_check_passes(capfd: pytest.CaptureFixture[str]) -> None:
    """Our promise: `make demo` shows a whole conversation with the real server, offline."""
    code = demo()

    said = re.sub(r"/\S+/workspace/", "", capfd.readouterr().out)
    assert code == 0
    assert "demonstration and not a language model" in " ".join(said.split())
    assert f"you     {the_demo.PROMPT}\nthinks  A tour begins with a look around.\nagent   This is" in said
    assert "tool    read README.md: pending → in_progress → completed\n" in said
    assert (
        "tool    edit hello.py: pending\n"
        "        | hello.py (new file)\n"
        '        | + print("Hello from the demonstration.")\n'
        "asks    edit hello.py: Allow once / Allow writing hello.py for this session / "
        "Always allow writing hello.py in this project / Reject / "
        "Always reject writing hello.py in this project?\n"
        "you     Allow once\n"
        "tool    edit hello.py: in_progress → completed\n"
    ) in said
    assert (
        "tool    execute python3 hello.py: in_progress → completed\n        | Hello from the demonstration.\n"
    ) in said
    assert "\nended   end_turn\n" in said
    assert said.splitlines()[-1].startswith("OK: ended end_turn, file written, command ran, permission asked")


def test_the_command_line_runs_it_anywhere_whatever_the_person_has_set(tmp_path: Path) -> None:
    """Our promise: the person's settings and directory do not change the demo; no colour in a pipe."""
    (tmp_path / "json.py").write_text("raise RuntimeError('imported from the working directory')")
    mine = {"ACP_SERVER_PERMISSION_MODE": "full-auto", "ACP_SERVER_HOME": str(tmp_path / "state")}

    ran = subprocess.run(
        [Path(sys.executable).with_name("acp-server"), "demo"],
        cwd=tmp_path,
        env={**os.environ, **mine},
        capture_output=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "\x1b" not in ran.stdout
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("silent", "waited 0.2 s in vain for the answer to initialize"),
        ("stubborn", "waited 0.2 s in vain for the answer to initialize"),
        ("dies", "the server ended before the answer to initialize"),
        ("deaf", "the server no longer reads: session/new was lost"),
        ("refuses", "session/new was answered with an error: no model"),
        ("nameless", "the answer to session/new names no session"),
        ("stays", "waited 0.2 s in vain for the server to exit, which it should within 0.1 s"),
        ("closes", "the server closed its output but runs on after 0.2 s"),
    ],
)
def test_a_server_that_does_not_play_along_fails_the_demo_in_words(
    how: str, words: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: every wait has an end and says what it was for; nothing is left running."""
    monkeypatch.setattr(the_demo, "LEAVE_S", 0.1)
    monkeypatch.setattr(demo_editor, "TERM_GRACE_S", 0.1)

    code = run_stand_in(how, wait_s=0.2 if how in ("silent", "stubborn") else 10.0)

    assert code == 1
    assert f"FAILED: {words}" in capfd.readouterr().out.splitlines()[-1]


def test_the_last_line_names_everything_that_was_wrong(capfd: pytest.CaptureFixture[str]) -> None:
    """Our promise: the demo is a check, and says which part of it failed."""
    code = run_stand_in(
        "spoilt", [{"method": "no/such"}, chunk("Hm."), update("tool_call", toolCallId="c", title="t")]
    )

    last = capfd.readouterr().out.splitlines()[-1]
    assert code == 1
    assert last.removeprefix("FAILED: ").split("; ") == [
        "the turn ended with 'refusal', not 'end_turn'",
        f"hello.py holds None, not {PROGRAM.encode()!r}",
        f"no command ran that printed {OUTPUT!r}",
        "permission was not asked for the write",
        "permission was not asked for the command",
        "a line is no JSON-RPC 2.0 object: b'oops\\n'",
        "an unknown notification: 'no/such'",
        "the prompt was answered while the call 'c' was pending",
        "agent_message_chunk came after the prompt was answered",
        "the server exited with 5",
    ]


def test_a_server_that_leaves_late_fails_the_demo(tmp_path: Path) -> None:
    """Contracts 13: the server is gone soon after its input ends."""
    frames = Frames()
    frames.cards["c"] = Card("t", "execute", "completed", [_said(f"```console\n{OUTPUT}\n```")])
    frames.asked = ["edit", "execute"]
    (tmp_path / "hello.py").write_text(PROGRAM)

    assert list(_failures("end_turn", tmp_path, frames, Leaving(0, LEAVE_S))) == []
    assert list(_failures("end_turn", tmp_path, frames, Leaving(0, 3.0))) == [
        "the server needed 3.0 s to exit, more than 2"
    ]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ([], "no JSON-RPC 2.0 object"),
        ({"id": 1, "result": {}, "jsonrpc": "1.0"}, "no JSON-RPC 2.0 object"),
        ({"id": 9, "result": {}}, "a response to a request that is not open: 9"),
        ({"id": "1", "result": {}}, "a response to a request that is not open: '1'"),
        ({"id": 1}, "must hold either a result or an error"),
        (
            {"id": 1, "result": {}, "error": {"code": 1, "message": ""}},
            "must hold either a result or an error",
        ),
        ({"id": 1, "error": {"code": "1", "message": ""}}, "needs a code and a message"),
        ({"id": 1, "result": {"stopReason": "tired"}}, "no stop reason of ACP: 'tired'"),
        ({"id": 7, "method": "fs/read_text_file", "params": {}}, "which this editor does not offer"),
        ({"id": None, "method": ASK}, "request id None is not fit"),
        ({"id": 7, "method": ASK, "params": {"sessionId": "other"}}, "does not name our session"),
        ({"id": 7, "method": ASK, "params": {"sessionId": "s"}}, "a call that was not announced"),
        (
            {
                "id": 7,
                "method": ASK,
                "params": {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": [{}]},
            },
            "each permission option needs",
        ),
        (
            {
                "id": 7,
                "method": ASK,
                "params": {
                    "sessionId": "s",
                    "toolCall": {"toolCallId": "c"},
                    "options": [{"optionId": "n", "name": "No", "kind": "reject_once"}],
                },
            },
            "no permission option allows once",
        ),
        ({"method": "no/such"}, "an unknown notification"),
        ({"method": UPDATE, "params": {"sessionId": "s"}}, "without an update"),
        (
            {"method": UPDATE, "params": {"sessionId": "other", "update": {}}},
            "a session we do not know: 'other'",
        ),
        (update("no_such"), "no sessionUpdate of ACP: 'no_such'"),
        (update("agent_message_chunk"), "agent_message_chunk needs a content block"),
        (update("agent_message_chunk", content={"type": "text"}), "needs a content block"),
        (update("plan"), "a plan needs entries"),
        (update("tool_call", toolCallId="d"), "needs a toolCallId and a title"),
        (update("tool_call", toolCallId="c", title="t"), "the call 'c' was announced twice"),
        (update("tool_call", toolCallId="d", title="t", kind="dance"), "no tool kind of ACP: 'dance'"),
        (update("tool_call_update", toolCallId="d"), "'d', which was not announced"),
        (update("tool_call_update", toolCallId="c", status="done"), "no tool status of ACP: 'done'"),
        (update("tool_call_update", toolCallId="c", title=1), "a title must be text"),
        (
            update("tool_call_update", toolCallId="c", content=[{}]),
            "must be content blocks, diffs or terminals",
        ),
        (
            update("tool_call_update", toolCallId="e", status="failed"),
            "the call 'e' changed after it was completed",
        ),
    ],
)
def test_a_frame_acp_does_not_know_is_a_fault(frame: Any, words: str) -> None:
    """ACP, schema page; JSON-RPC 2.0. The rules are kinds of fault from public bug reports."""
    frames = _prompted()

    frames.see(json.dumps({"jsonrpc": "2.0", **frame} if isinstance(frame, dict) else frame).encode())

    assert [fault for fault in frames.faults if words in fault], frames.faults


@pytest.mark.parametrize(
    "frame",
    [
        update("plan", entries=[]),
        update("usage_update"),
        update("agent_thought_chunk", content={"type": "image"}),
        update("tool_call_update", toolCallId="c", content=[{"type": "terminal", "terminalId": "t"}]),
        update("tool_call_update", toolCallId="c", content=[{"type": "diff", "path": "p", "newText": ""}]),
    ],
)
def test_a_frame_acp_knows_is_none(frame: Json) -> None:
    """ACP, schema page: what other agents may say, though this one does not yet."""
    frames = _prompted()

    assert frames.see(json.dumps({"jsonrpc": "2.0", **frame}).encode()) is not None
    assert frames.faults == []


def test_after_the_answer_only_news_of_the_session_may_come() -> None:
    """ACP, prompt turn page; opencode and others were reported to send updates after the answer."""
    frames = _prompted()
    frames.see(
        json.dumps({"jsonrpc": "2.0", **update("tool_call_update", toolCallId="c", status="failed")}).encode()
    )
    frames.see(b'{"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}}')

    for late in (update("session_info_update"), chunk("More."), {"id": 7, "method": ASK}):
        frames.see(json.dumps({"jsonrpc": "2.0", **late}).encode())

    assert frames.faults == [
        "agent_message_chunk came after the prompt was answered",
        f"the agent asked {ASK!r} after the prompt was answered",
        "a permission request does not name our session",
    ]


def test_a_permission_id_is_used_once() -> None:
    """JSON-RPC 2.0: two open requests under one id cannot be told apart."""
    frames = _prompted()
    ask = {
        "jsonrpc": "2.0",
        "id": 7,
        "method": ASK,
        "params": {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": OPTIONS},
    }

    first, second = (frames.see(json.dumps(ask).encode()) for _ in range(2))

    assert first is not None
    assert frames.permission(first).allow == OPTIONS[0]
    assert second is None
    assert frames.faults == ["the agent's request id 7 is not fit or was used before"]


def test_on_a_terminal_thoughts_are_dim_and_a_failure_is_red() -> None:
    """Our promise: who says what can be seen at a glance."""
    out = io.StringIO()
    screen = Screen(out, colour=True)
    card = Card("rm", "delete", "failed", [_said("no\nsuch file")])

    screen.update({"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": "Hm"}}, {})
    screen.update({"sessionUpdate": "tool_call", "toolCallId": "c", "status": "failed"}, {"c": card})
    screen.verdict(["all of it"])

    assert out.getvalue() == (
        "\x1b[1mthinks  \x1b[0m\x1b[2mHm\x1b[0m\n"
        "\x1b[1mtool    \x1b[0mdelete rm: \x1b[31mfailed\x1b[0m\n"
        "        \x1b[2m| no\x1b[0m\n        \x1b[2m| such file\x1b[0m\n"
        "\x1b[31mFAILED: all of it\x1b[0m\n"
    )


def test_what_is_no_text_is_named_and_lines_keep_their_column() -> None:
    """Our promise: a block that cannot be shown is not passed over in silence; news without words is."""
    out = io.StringIO()
    screen = Screen(out, colour=False)
    diff = {"type": "diff", "path": "a.txt", "oldText": "one\n", "newText": "two\n"}
    card = Card("a.txt", "edit", "pending", [diff])

    for text in ("One\n", "\nTwo", "\n"):
        screen.update({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}, {})
    screen.update({"sessionUpdate": "user_message_chunk", "content": {"type": "image"}}, {})
    screen.update({"sessionUpdate": "plan", "entries": []}, {})
    screen.update({"sessionUpdate": "tool_call", "toolCallId": "c", "status": "pending"}, {"c": card})
    screen.update({"sessionUpdate": "tool_call_update", "toolCallId": "c"}, {"c": card})

    assert out.getvalue() == (
        "agent   One\n\n        Two\nyou     [image]\n"
        "tool    edit a.txt: pending\n        | a.txt\n        | - one\n        | + two\n"
    )


@pytest.mark.parametrize(
    ("terminal", "environ", "wanted"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": ""}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_colour_is_for_terminals_of_people_who_did_not_refuse_it(
    terminal: bool, environ: Mapping[str, str], wanted: bool
) -> None:
    """no-color.org: a variable that is set and not empty refuses colour."""

    class Out(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    assert wants_colour(Out(), environ) is wanted


def _said(text: str) -> Json:
    return {"type": "content", "content": {"type": "text", "text": text}}


def _prompted() -> Frames:
    """Frames in the middle of a turn: request 1 is open, the call `c` runs, `e` is over."""
    frames = Frames()
    frames.session = "s"
    frames.ask("session/prompt")
    frames.cards["c"] = Card("t", "edit", "pending", [])
    frames.cards["e"] = Card("t", "read", "completed", [])
    return frames
