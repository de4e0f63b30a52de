"""A trace becomes a golden that plays the same scene again; one that cannot is refused in words."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acp_server.trace_model import Row, TraceError
from acp_server.trace_to_golden import ABOUT, golden_files, read_trace, trace_to_golden
from tests.goldens.golden import GOLDENS, Golden, read_golden
from tests.goldens.runner import SERVER, run_golden
from tests.goldens.verdict import faults_of, then_files

Json = dict[str, Any]
S1, S2 = "11111111-aaaa", "22222222-bbbb"
NEW: Json = {"send": "session/new", "params": {"cwd": "$cwd", "mcpServers": []}, "as": "new1"}


class Tape:
    """Writes a trace by hand; request ids count up on each side."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._calls: list[str] = []

    def row(self, sender: str, **body: Any) -> None:
        self.rows.append(Row(len(self.rows) + 1, sender, {"from": sender, **body}))

    def editor(self, **frame: Any) -> None:
        self.row("editor", frame={"jsonrpc": "2.0", **frame})

    def agent(self, **frame: Any) -> None:
        self.row("agent", frame={"jsonrpc": "2.0", **frame})

    def new(self, session: str = S1, cwd: str = "/w") -> None:
        number = len(self.rows) + 100
        self.editor(id=number, method="session/new", params={"cwd": cwd, "mcpServers": []})
        self.agent(id=number, result={"sessionId": session})

    def prompt(
        self, number: int, session: str = S1, text: str = "Hi", method: str = "session/prompt"
    ) -> None:
        prompt = [{"type": "text", "text": text}]
        self.editor(id=number, method=method, params={"sessionId": session, "prompt": prompt})

    def cancel(self, session: str = S1) -> None:
        self.editor(method="session/cancel", params={"sessionId": session})

    def begin(self, session: str = S1) -> int:
        self._calls.append(session)
        request = {"last_user": "Hi", "tools": []}
        self.row("model", session=session, call=len(self._calls), request=request)
        return len(self._calls)

    def chunk(self, call: int, kind: str, /, **fields: Any) -> None:
        self.row("model", session=self._calls[call - 1], call=call, chunk={"type": kind, **fields})

    def text(self, call: int, text: str) -> None:
        self.chunk(call, "text-delta", index=0, text=text)
        content = {"type": "text", "text": text}
        self.update(self._calls[call - 1], sessionUpdate="agent_message_chunk", content=content)

    def update(self, session: str = S1, **update: Any) -> None:
        self.agent(method="session/update", params={"sessionId": session, "update": update})

    def end(self, call: int, **how: Any) -> None:
        self.row("model", session=self._calls[call - 1], call=call, end=how)

    def finish(self, call: int, kind: str = "stop") -> None:
        self.chunk(call, "finish", kind=kind)
        self.end(call, finish=kind)

    def tool(self, call_id: str, status: str, session: str = S1) -> None:
        kind = "tool_call" if status == "pending" else "tool_call_update"
        self.update(session, sessionUpdate=kind, toolCallId=call_id, status=status)

    def answer(self, number: int, reason: str = "end_turn") -> None:
        self.agent(id=number, result={"stopReason": reason})

    def steps(self) -> list[Json]:
        """The steps behind the first session/new."""
        steps = [json.loads(line) for line in golden_files(self.rows)["when.jsonl"].splitlines()]
        return steps[steps.index(NEW) + 1 :]

    def script(self) -> list[list[Json]]:
        """What each call does."""
        return [json.loads(line)["do"] for line in golden_files(self.rows)["given/model.jsonl"].splitlines()]


def sent(name: str, session: str = "$new1", text: str = "Hi", method: str = "session/prompt") -> Json:
    prompt = [{"type": "text", "text": text}]
    return {"send": method, "params": {"sessionId": f"{session}.sessionId", "prompt": prompt}, "as": name}


def seen(session: str = "$new1", **update: Any) -> Json:
    return {"wait": {"update": update, "session": session}}


def said(text: str, session: str = "$new1") -> Json:
    return seen(session, sessionUpdate="agent_message_chunk", content={"type": "text", "text": text})


def answered(name: str) -> Json:
    return {"wait": {"response": name}}


CANCEL = {"notify": "session/cancel", "params": {"sessionId": "$new1.sessionId"}}


@pytest.mark.parametrize(
    "name",
    [
        "a-cancel-closes-an-open-permission",
        "a-cancel-stops-a-running-command",
        "a-cancel-takes-the-waiting-prompts-along",
        "a-cancel-together-with-its-prompt-stops-it-before-the-first-step",
        "a-command-asks-runs-and-shows-its-output",
        "a-failed-model-call-answers-with-its-reason",
        "a-turn-stops-at-its-step-limit",
        "steering-joins-the-running-turn",
        "the-end-of-input-closes-a-running-turn",
        "thinking-comes-before-the-text",
    ],
)
def test_a_golden_made_of_a_golden_s_trace_records_the_same(name: str, tmp_path: Path) -> None:
    """Contracts 13: `acp-server trace-to-golden FILE DIR` makes a golden folder of a trace."""
    original = read_golden(GOLDENS / name)
    # A second process would write the trace anew.
    unloaded = replace(original, about=(*original.about[:-1], "allows: no-reload"))
    trace = tmp_path / "trace.jsonl"
    first = run_golden(unloaded, tmp_path / "first", (*SERVER, "--trace", str(trace)))
    assert faults_of(unloaded, first) == []
    _keep_the_golden_s_own(trace)

    made = tmp_path / "made"
    assert trace_to_golden(str(trace), str(made)) == 0
    if original.workspace.is_dir():
        shutil.copytree(original.workspace, made / "given" / "workspace")
    golden = read_golden(made)
    second = run_golden(golden, tmp_path / "second")

    assert faults_of(golden, second) == []
    assert then_files(golden, second) == then_files(original, first)
    assert golden.settings == original.settings


def test_two_sessions_of_a_trace_are_told_apart(tmp_path: Path) -> None:
    """Contracts 10: a golden whose order is luck is none; one session moves at a time."""
    original = read_golden(GOLDENS / "two-sessions-run-side-by-side")
    unloaded = replace(original, about=(*original.about[:-1], "allows: no-reload"))
    trace = tmp_path / "trace.jsonl"
    run_golden(unloaded, tmp_path / "first", (*SERVER, "--trace", str(trace)))
    _keep_the_golden_s_own(trace)

    assert trace_to_golden(str(trace), str(tmp_path / "made")) == 0
    golden: Golden = read_golden(tmp_path / "made")
    outcome = run_golden(golden, tmp_path / "second")

    assert faults_of(golden, outcome) == []
    assert [line["do"][0] for line in golden.script] == [{"text": "First: "}, {"text": "Second: "}]


def test_what_a_model_said_is_said_again_piece_by_piece() -> None:
    """Contracts 9: deltas stay apart, a call's arguments come together, usage stands before the end."""
    tape = Tape()
    tape.new()
    tape.prompt(1)
    call = tape.begin()
    tape.chunk(call, "block-start", index=0, kind="reasoning")
    tape.chunk(call, "reasoning-delta", index=0, text="Hm")
    tape.chunk(call, "text-delta", index=1, text="in /w/a")
    tape.chunk(call, "text-delta", index=1, text=".")
    tape.chunk(call, "tool-call-delta", index=2, id="c1", name="read", arguments='{"path": ')
    tape.chunk(call, "tool-call-delta", index=3, id="", name="write", arguments="{bad")
    tape.chunk(call, "tool-call-delta", index=2, id="", name="", arguments='"/w"}')
    tape.chunk(call, "block-end", index=2)
    tape.chunk(call, "block-end", index=4, block={"type": "text", "text": "whole"})
    tape.chunk(call, "block-end", index=5, block={"type": "reasoning", "text": "whole"})
    tape.chunk(call, "block-end", index=1, block={"type": "text", "text": "told"})
    tape.chunk(call, "block-end", index=7, block={"type": "reasoning", "text": "", "opaque": "unread"})
    tape.chunk(
        call, "block-end", index=6, block={"type": "tool-call", "id": "c3", "name": "list", "arguments": "[]"}
    )
    tape.chunk(call, "usage", usage={"inputTokens": 3, "outputTokens": 4})
    tape.finish(call, "tool-calls")
    tape.answer(1)

    assert tape.script() == [
        [
            {"think": "Hm"},
            {"text": "in $cwd/a"},
            {"text": "."},
            {"tool": "read", "id": "c1", "args": {"path": "$cwd"}},
            {"tool": "write", "args_raw": "{bad"},
            {"text": "whole"},
            {"think": "whole"},
            {"tool": "list", "id": "c3", "args_raw": "[]"},
            {"usage": {"in": 3, "out": 4}},
            {"finish": "tool_calls"},
        ]
    ]


@pytest.mark.parametrize(
    ("chunk", "end", "item"),
    [
        ({"type": "finish", "kind": "refusal"}, {"finish": "refusal"}, {"finish": "refusal"}),
        ({"type": "finish", "kind": "max-tokens"}, {"finish": "max-tokens"}, {"finish": "max_tokens"}),
        (
            {"type": "finish", "kind": "error", "errorKind": "server", "message": "Oh."},
            {"finish": "error"},
            {"raise": {"kind": "server", "message": "Oh."}},
        ),
        (
            {"type": "finish", "kind": "aborted"},
            {"finish": "aborted"},
            {"raise": {"kind": "unknown", "message": "the provider stopped its answer"}},
        ),
        (
            {"type": "block-start", "index": 0, "kind": "text"},
            {"finish": None},
            {"raise": {"kind": "transport", "message": "the model's answer was cut off before its end"}},
        ),
        (
            {"type": "block-start", "index": 0, "kind": "text"},
            {"error": {"kind": "auth", "message": "No.", "status": 401}},
            {"raise": {"kind": "auth", "message": "No.", "status": 401}},
        ),
        ({"type": "block-start", "index": 0, "kind": "text"}, {"cancelled": True}, {"hang": True}),
    ],
)
def test_a_call_ends_as_it_did(chunk: Json, end: Json, item: Json) -> None:
    """Contracts 9: finish, raise, and hang for a call that was stopped."""
    tape = Tape()
    tape.new()
    tape.prompt(1)
    call = tape.begin()
    tape.row("model", session=S1, call=call, chunk=chunk)
    tape.end(call, **end)
    tape.answer(1)

    assert tape.script() == [[item]]


def test_a_line_in_the_middle_of_a_stream_holds_the_model_there() -> None:
    """Contracts 10: a frame is written only while no model call emits."""
    tape = Tape()
    tape.new()
    tape.prompt(1)
    call = tape.begin()
    tape.text(call, "One")
    tape.prompt(2, text="Wait", method="_agent_loop/steer")
    tape.prompt(3, text="Next")
    tape.text(call, "Two")
    tape.chunk(call, "tool-call-delta", index=1, id="c", name="list", arguments="{}")
    tape.editor(method="no/such")
    tape.finish(call, "tool-calls")
    tape.agent(id=2, result={"outcome": "steered"})
    tape.answer(1)

    assert tape.script() == [
        [
            {"text": "One"},
            {"hold": "hold1"},
            {"hold": "hold2"},
            {"text": "Two"},
            {"hold": "hold3"},
            {"tool": "list", "id": "c", "args": {}},
            {"finish": "tool_calls"},
        ]
    ]
    assert tape.steps() == [
        sent("prompt1"),
        said("One"),
        sent("steer1", text="Wait", method="_agent_loop/steer"),
        {"release": "hold1"},
        sent("prompt2", text="Next"),
        {"release": "hold2"},
        said("Two"),
        {"notify": "no/such", "params": {}},
        {"release": "hold3"},
        answered("steer1"),
        answered("prompt1"),
        {"eof": True},
        {"exit": 0},
    ]


def test_a_line_between_two_places_of_rest_waits_for_the_next() -> None:
    """Contracts 10: while a tool runs to its end by itself, nothing can be written without luck."""
    tape = Tape()
    tape.new()
    tape.prompt(1)
    first = tape.begin()
    tape.finish(first, "tool-calls")
    tape.tool("c", "pending")
    tape.tool("c", "in_progress")
    tape.prompt(2, text="Hurry", method="_agent_loop/steer")
    tape.tool("c", "completed")
    second = tape.begin()
    tape.agent(id=2, result={"outcome": "steered"})
    tape.finish(second)
    tape.answer(1)

    assert tape.script() == [[{"finish": "tool_calls"}], [{"hold": "hold1"}, {"finish": "stop"}]]
    assert tape.steps() == [
        sent("prompt1"),
        seen(sessionUpdate="tool_call_update", toolCallId="c", status="completed"),
        sent("steer1", text="Hurry", method="_agent_loop/steer"),
        {"release": "hold1"},
        answered("steer1"),
        answered("prompt1"),
    ]


def test_a_cancel_waits_for_the_tool_it_stops_and_for_what_that_had_printed() -> None:
    """ACP, prompt turn page (cancellation): a running tool is a place of rest once its start was seen."""
    tape = Tape()
    tape.new()
    tape.prompt(1)
    tape.finish(tape.begin(), "tool-calls")
    tape.tool("c", "pending")
    tape.tool("c", "in_progress")
    tape.update(sessionUpdate="tool_call_update", toolCallId="c", content=["$1"])
    tape.cancel()
    tape.tool("c", "failed")
    tape.answer(1, "cancelled")

    cancelled = tape.steps()
    assert cancelled == [
        sent("prompt1"),
        seen(sessionUpdate="tool_call_update", toolCallId="c", status="in_progress"),
        CANCEL,
        answered("prompt1"),
    ]

    tape.rows[8].body["frame"]["params"]["update"]["content"] = ["1"]
    output = seen(sessionUpdate="tool_call_update", toolCallId="c", content=["1"])
    assert tape.steps() == [*cancelled[:2], output, *cancelled[2:]]


@pytest.mark.parametrize(
    ("stop", "step"),
    [
        ({"method": "session/cancel", "params": {"sessionId": S1}}, CANCEL),
        (
            {"method": "$/cancel_request", "params": {"requestId": 1}},
            {"notify": "$/cancel_request", "params": {"requestId": "$id.prompt1"}},
        ),
    ],
)
def test_a_prompt_stopped_before_its_first_call_is_written_together_with_what_stopped_it(
    stop: Json, step: Json
) -> None:
    """Contracts 10: `together` is the way to write before the turn can begin."""
    tape = Tape()
    tape.new()
    tape.prompt(1)
    tape.editor(**stop)
    tape.answer(1, "cancelled")
    tape.prompt(2)
    tape.answer(2)

    assert tape.steps() == [
        {"together": [sent("prompt1"), step]},
        answered("prompt1"),
        sent("prompt2"),
        answered("prompt2"),
    ]


def test_what_finds_no_place_of_rest_is_written_at_the_end() -> None:
    """Our promise: nothing the editor said is lost, though the golden's author may have to mend the order."""
    tape = Tape()
    tape.new()
    tape.prompt(1)
    tape.prompt(2, text="Again")
    tape.editor(method="$/cancel_request", params={"requestId": "unknown"})

    assert tape.steps() == [
        sent("prompt1"),
        sent("prompt2", text="Again"),
        {"notify": "$/cancel_request", "params": {"requestId": "unknown"}},
        {"eof": True},
        {"exit": 0},
    ]


def test_a_refused_turn_is_awaited_though_it_was_answered_before_it_was_written() -> None:
    """The golden harness refuses a turn that was answered and not awaited."""
    tape = Tape()
    tape.new()
    tape.prompt(1)
    first = tape.begin()
    tape.finish(first, "tool-calls")
    tape.prompt(2, session="nope")
    tape.agent(id=2, error={"code": -32002, "message": "unknown"})
    tape.answer(1)

    refused = sent("prompt2", session="nope")
    refused["params"]["sessionId"] = "nope"
    assert tape.steps() == [sent("prompt1"), answered("prompt1"), refused, answered("prompt2")]


def test_a_held_session_goes_on_when_the_other_has_done_its_part() -> None:
    """Contracts 10: releasing is acting too; it waits until the other session rests or has answered."""
    tape = Tape()
    tape.new(S1)
    tape.new(S2, "/w/sub")
    tape.prompt(1, S1)
    one = tape.begin(S1)
    tape.text(one, "A")
    tape.prompt(2, S2)
    two = tape.begin(S2)
    tape.text(two, "B")
    tape.finish(two)
    tape.answer(2)
    tape.finish(one)
    tape.answer(1)

    assert tape.steps() == [
        {"send": "session/new", "params": {"cwd": "$cwd/sub", "mcpServers": []}, "as": "new2"},
        sent("prompt1"),
        said("A"),
        sent("prompt2", session="$new2"),
        answered("prompt2"),
        {"release": "hold1"},
        answered("prompt1"),
    ]


def test_questions_of_the_agent_are_awaited_and_answered_by_name() -> None:
    """Contracts 10: `answer` steps name the request a `wait` step found."""
    tape = Tape()
    tape.new()
    tape.prompt(1)
    tape.finish(tape.begin(), "tool-calls")
    tape.tool("c", "pending")
    tape.agent(id=1, method="session/request_permission", params={"sessionId": S1})
    tape.editor(id=1, error={"code": 1, "message": f"not in {S1}"})
    tape.tool("c", "failed")
    tape.answer(1)
    tape.editor(id=1, result="twice")

    assert tape.steps() == [
        sent("prompt1"),
        {"wait": {"request": "session/request_permission", "as": "ask1"}},
        {"answer": "ask1", "error": {"code": 1, "message": "not in $new1.sessionId"}},
        answered("prompt1"),
        {"raw": '{"jsonrpc": "2.0", "id": "raw1", "result": "twice"}'},
    ]


def test_lines_that_are_no_messages_are_written_as_they_were() -> None:
    """JSON-RPC 2.0: arrays, bare values, broken lines and bad ids are the editor's to send."""
    tape = Tape()
    tape.new()
    tape.row("editor", raw="{oops /w")
    tape.row("editor", frame=[1])
    tape.editor(id=None, method="initialize")
    tape.editor(method="initialize", params=[])
    tape.row("agent", raw="noise")
    tape.agent(method="_agent_loop/event")
    tape.agent(method="session/update", params={"sessionId": S1, "update": {"sessionUpdate": "plan"}})

    assert tape.steps() == [
        {"raw": "{oops $cwd"},
        {"raw": "[1]"},
        {"raw": '{"jsonrpc": "2.0", "id": null, "method": "initialize"}'},
        {"raw": '{"jsonrpc": "2.0", "method": "initialize", "params": []}'},
    ]


def test_a_message_chunk_is_awaited_without_text_a_golden_would_misread() -> None:
    """Our promise: a model may say $HOME, or name the directory, and the golden still plays."""
    tape = Tape()
    tape.new()
    tape.prompt(1)
    call = tape.begin()
    tape.text(call, "$HOME")
    tape.cancel()
    tape.end(call, cancelled=True)
    tape.answer(1, "cancelled")

    assert tape.steps()[1:3] == [seen(sessionUpdate="agent_message_chunk"), CANCEL]


def test_settings_that_differ_and_a_load_of_its_own_session_go_along() -> None:
    """Contracts 11 and 13: the golden is played with the mode of the trace."""
    tape = Tape()
    tape.row("server", trace=1, agent={"permission_mode": "full-auto", "max_steps": 2})
    tape.new()
    tape.editor(id="l", method="session/load", params={"sessionId": S1, "cwd": "/w", "mcpServers": []})
    tape.agent(id="l", result={})
    tape.row("editor", event="eof")
    tape.cancel()

    files = golden_files(tape.rows)

    assert files["given/settings.toml"] == '[agent]\npermission_mode = "full-auto"\nmax_steps = 2\n'
    assert files["about.md"] == ABOUT
    assert tape.steps() == [
        {
            "send": "session/load",
            "params": {"sessionId": "$new1.sessionId", "cwd": "$cwd", "mcpServers": []},
            "as": "load1",
        }
    ]


def test_a_directory_has_its_name_though_no_session_was_made() -> None:
    """Contracts 10: no golden holds a path of the machine it was made on."""
    tape = Tape()
    tape.editor(method="no/such", params={"cwd": "relative"})
    tape.editor(id=1, method="session/load", params={"sessionId": "x", "cwd": "/w/"})
    tape.agent(id=1, error={"code": -32002, "message": "unknown"})

    last = golden_files(tape.rows)["when.jsonl"].splitlines()[-1]

    assert json.loads(last)["params"] == {"sessionId": "x", "cwd": "$cwd/"}


def _load_of_another(tape: Tape) -> None:
    tape.editor(id=1, method="session/load", params={"sessionId": "x", "cwd": "/w"})
    tape.agent(id=1, result={})


def _two_directories(tape: Tape) -> None:
    tape.new(S1, "/w")
    tape.new(S2, "/wide")


def _unopened(tape: Tape) -> None:
    tape.begin()


def _unbegun(tape: Tape) -> None:
    tape.row("model", session=S1, call=7, end={"cancelled": True})


def _unknown_chunk(tape: Tape) -> None:
    tape.chunk(tape.begin(), "hologram")


def _no_end(tape: Tape) -> None:
    tape.end(tape.begin(), tired=True)


def _a_reference(tape: Tape) -> None:
    tape.editor(method="no/such", params={"text": "$HOME"})


def _a_known_name(tape: Tape) -> None:
    tape.row("editor", raw="say $new1 or so")


@pytest.mark.parametrize(
    ("write", "line", "words"),
    [
        (_load_of_another, 1, "a session that was made before the trace began"),
        (_two_directories, 3, "a golden has one directory, and /wide is not in /w"),
        (_unopened, 1, "a session that was never opened"),
        (_unbegun, 1, "no call that began before it"),
        (_unknown_chunk, 2, "not what a model says: KeyError('hologram')"),
        (_no_end, 2, "not what a model says: KeyError('finish')"),
        (_a_reference, 1, "would take the text '$HOME' for a reference"),
        (_a_known_name, 1, "would take the text '$new1' for a reference"),
    ],
)
def test_what_no_golden_can_say_is_refused_with_its_line(write: Any, line: int, words: str) -> None:
    """Our promise: a trace that makes no golden says where, so that a person can mend it."""
    tape = Tape()
    write(tape)

    with pytest.raises(TraceError) as refused:
        golden_files(tape.rows)

    assert words in str(refused.value)
    assert refused.value.line == line


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "the trace is empty"),
        ('{"from": "server"}\n{"from": "edi', 2, "this is no JSON"),
        ('{"from": "server"}\n[]\n', 2, "a trace has no such line"),
        ('{"from": "editor"}\n', 1, "a trace has no such line"),
    ],
)
def test_a_broken_trace_is_refused_with_its_line(
    text: str, line: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Our promise: clear errors, and nothing written."""
    (tmp_path / "trace.jsonl").write_text(text)

    code = trace_to_golden(str(tmp_path / "trace.jsonl"), str(tmp_path / "made"))

    assert code == 1
    assert capsys.readouterr().err == f"acp-server: {tmp_path}/trace.jsonl, line {line}: {words}\n"
    assert not (tmp_path / "made").exists()


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Our promise: a golden holds a person's words; only an empty folder is filled."""
    (tmp_path / "trace.jsonl").write_text('{"from": "server"}\n{"from": "agent", "frame": 1}\n')
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "about.md").write_text("mine")
    (tmp_path / "empty").mkdir()
    trace = str(tmp_path / "trace.jsonl")

    codes = [trace_to_golden(trace, str(tmp_path / name)) for name in ("full", "trace.jsonl", "empty")]
    missing = trace_to_golden(str(tmp_path / "none"), str(tmp_path / "made"))

    assert codes == [1, 1, 0]
    assert missing == 1
    assert (tmp_path / "full" / "about.md").read_text() == "mine"
    assert (tmp_path / "empty" / "about.md").read_text() == ABOUT
    assert "is there already" in capsys.readouterr().err


def test_rows_are_read_with_the_numbers_of_their_lines() -> None:
    """Our promise: an error can be found in an editor."""
    assert read_trace(b'{"from":"editor","raw":"x"}\n{"from":"editor","event":"eof"}\n') == [
        Row(1, "editor", {"from": "editor", "raw": "x"}),
        Row(2, "editor", {"from": "editor", "event": "eof"}),
    ]


def _keep_the_golden_s_own(trace: Path) -> None:
    """Leave out what the harness said for itself: its round trips, and the further session at the end."""
    rows = [json.loads(line) for line in trace.read_text().splitlines()]
    rows = [row for row in rows if "_test/sync" not in str(row) and "test-sync-" not in str(row)]
    if "Are you still there?" in str(rows):
        last = max(at for at, row in enumerate(rows) if "'session/new'" in str(row))
        rows = rows[:last]
    trace.write_text("".join(json.dumps(row) + "\n" for row in rows))
