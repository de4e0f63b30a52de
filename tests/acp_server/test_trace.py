"""A trace tells all that was said, in order, and no secrets; and it never stands in the server's way."""

import json
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from acp_server.trace import Trace
from acp_server.trace_secrets import HIDDEN, raw_without_secrets, secrets_in, without_secrets
from agent_loop import Chunk, Finish, ModelRequest, ProviderError, TextDelta
from tests.doubles.editor import Editor

Json = dict[str, Any]
REQUEST = ModelRequest("p", "m", [], session_id="s")
ROOT = Path(__file__).parents[2]
KEY = "sk-0123456789"


class Sink:
    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def write(self, line: bytes) -> None:
        self.lines.append(line)


def rows_in(path: Path) -> list[Json]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def start(tmp_path: Path, script: list[Json], trace: Path) -> Editor:
    """A real server with a scripted model that traces to `trace`."""
    state = tmp_path / "state"
    (tmp_path / "project").mkdir()
    state.mkdir()
    (tmp_path / "model.jsonl").write_text("".join(json.dumps(line) + "\n" for line in script))
    (state / "config.toml").write_text(
        'format = 1\nagent = {model = "scripted/x", max_steps = 3}\n'
        f'providers.scripted = {{kind = "scripted", script = "{tmp_path / "model.jsonl"}"}}\n'
    )
    kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    env = {**kept, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": os.defpath, "OPENAI_API_KEY": KEY}
    argv = [sys.executable, "-m", "acp_server", "--state-dir", str(state), "--trace", str(trace)]
    editor = Editor(argv, cwd=tmp_path, env=env)
    editor.start()
    return editor


@pytest.fixture
def editors() -> Iterator[list[Editor]]:
    """Editors to close whatever happens."""
    made: list[Editor] = []
    yield made
    for editor in made:
        editor.close()


def talk(editor: Editor, tmp_path: Path) -> None:
    """One prompt that names the key, one broken line, and the end."""
    editor.call("initialize", {"protocolVersion": 1})
    servers = [{"name": "m", "command": "/bin/m", "args": [], "env": [{"name": "T", "value": "mcp-token"}]}]
    new = editor.call("session/new", {"cwd": str(tmp_path / "project"), "mcpServers": servers})
    prompt = [{"type": "text", "text": f"My key is {KEY}."}]
    editor.call("session/prompt", {"sessionId": new["result"]["sessionId"], "prompt": prompt})
    editor.write_bytes(b'{"broken \n')
    editor.sync()
    editor.eof()


def test_both_directions_and_the_model_stand_in_the_trace_in_order(
    tmp_path: Path, editors: list[Editor]
) -> None:
    """Contracts 13: `--trace` records both directions and each model call's chunks, secrets dropped."""
    trace = tmp_path / "trace.jsonl"
    editors.append(start(tmp_path, [{"do": [{"text": f"Not {KEY}!"}, {"finish": "stop"}]}], trace))
    editor = editors[0]

    talk(editor, tmp_path)
    assert editor.wait_exit() == 0

    text, rows = trace.read_text(), rows_in(trace)
    session = rows[4]["frame"]["result"]["sessionId"]
    said = [
        (
            row["from"],
            next(key for key in ("trace", "frame", "raw", "request", "chunk", "end", "event") if key in row),
        )
        for row in rows
        if "test/sync" not in str(row) and "test-sync" not in str(row)
    ]
    assert said == [
        ("server", "trace"),
        *[("editor", "frame"), ("agent", "frame")] * 2,
        ("editor", "frame"),
        ("model", "request"),
        ("model", "chunk"),
        ("model", "chunk"),
        ("agent", "frame"),
        ("model", "chunk"),
        ("model", "chunk"),
        ("model", "end"),
        *[("agent", "frame")] * 2,
        ("editor", "raw"),
        ("agent", "frame"),
        ("editor", "event"),
    ]
    assert rows[0]["agent"] == {"max_steps": 3}
    assert rows[3]["frame"]["params"]["mcpServers"][0]["env"] == [{"name": "T", "value": HIDDEN}]
    assert rows[5]["frame"]["params"]["prompt"][0]["text"] == f"My key is {HIDDEN}."
    tools = rows[6]["request"].pop("tools")
    assert "read" in tools
    place = {"from": "model", "session": session, "call": 1}
    assert rows[6] == {**place, "request": {"last_user": f"My key is {HIDDEN}."}}
    assert rows[8] == {**place, "chunk": {"type": "text-delta", "index": 0, "text": f"Not {HIDDEN}!"}}
    assert rows[12] == {**place, "end": {"finish": "stop"}}
    assert KEY not in text
    assert "mcp-token" not in text
    assert trace.stat().st_mode & 0o077 == 0


def test_a_trace_that_cannot_be_written_costs_one_warning(tmp_path: Path, editors: list[Editor]) -> None:
    """Our promise: a failing trace never disturbs the server."""
    editors.append(start(tmp_path, [{"do": [{"text": "Hi."}, {"finish": "stop"}]}], tmp_path))
    editor = editors[0]

    talk(editor, tmp_path)
    assert editor.wait_exit() == 0

    assert editor.responses["3"]["result"] == {"stopReason": "end_turn"}
    log = (tmp_path / "state" / "log" / "acp-server.log").read_text()
    assert log.count("the trace") == 1
    assert "Is a directory" in log
    assert editor.stderr == ""


def test_a_trace_that_cannot_keep_up_ends_before_its_first_hole(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Our promise: queues have a size, and a trace with a hole would tell a wrong story."""
    may_go_on = threading.Event()
    trace = Trace(tmp_path / "trace.jsonl", queue_rows=2)
    begun = threading.Event()

    def slow() -> Json:
        begun.set()
        assert may_go_on.wait(10)
        return {"row": 1}

    trace.put(slow)
    assert begun.wait(10)
    for number in range(2, 9):
        trace.put(lambda number=number: {"row": number})  # type: ignore[misc]
    may_go_on.set()
    trace.close()

    assert [row["row"] for row in rows_in(tmp_path / "trace.jsonl")] == [1, 2, 3]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "more is said than can be written" in caplog.text


def test_closing_does_not_wait_for_a_file_nobody_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contracts 13: nothing keeps the process; opening a named pipe without a reader blocks for ever."""
    monkeypatch.setattr("acp_server.trace.FLUSH_S", 0.05)
    os.mkfifo(tmp_path / "pipe")
    trace = Trace(tmp_path / "pipe", queue_rows=1)

    trace.say(b"{}\n")
    trace.close()

    # Let the thread go: somebody reads at last.
    os.close(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK))


async def chunks_of(*said: Chunk | Exception) -> AsyncIterator[Chunk]:
    for chunk in said:
        if isinstance(chunk, Exception):
            raise chunk
        yield chunk


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ([Finish("stop")], {"finish": "stop"}),
        ([TextDelta(0, "a")], {"finish": None}),
        ([ValueError()], {"error": {"kind": "unknown", "message": "ValueError"}}),
        ([ProviderError("auth", "No.")], {"error": {"kind": "auth", "message": "No."}}),
        (
            [ProviderError("rate_limit", "Slow.", status=429, retry_after_s=1.5)],
            {"error": {"kind": "rate_limit", "message": "Slow.", "status": 429, "retryAfter": 1.5}},
        ),
    ],
)
async def test_the_end_of_each_model_call_is_told(tmp_path: Path, said: list[Any], end: Json) -> None:
    """Contracts 13: an end row says how a call ended; what it raised reaches the caller as it was."""
    trace = Trace(tmp_path / "trace.jsonl")
    heard: list[Chunk] = []
    raised = None

    try:
        async for chunk in trace.around_model(REQUEST, lambda _: chunks_of(*said)):
            heard.append(chunk)
    except Exception as error:
        raised = error
    trace.close()

    assert [*heard, *([raised] if raised else [])] == said
    assert rows_in(tmp_path / "trace.jsonl")[-1] == {"from": "model", "session": "s", "call": 1, "end": end}


async def test_a_call_that_is_left_early_is_closed_and_called_cancelled(tmp_path: Path) -> None:
    """Provider seam, rule 1: the loop closes the generator, wherever it stopped."""
    trace = Trace(tmp_path / "trace.jsonl")
    closed = []

    async def endless() -> AsyncIterator[Chunk]:
        try:
            while True:
                yield TextDelta(0, "a")
        finally:
            closed.append(True)

    async with aclosing(trace.around_model(REQUEST, lambda _: endless())) as chunks:  # type: ignore[type-var]
        async for _ in chunks:
            break
    trace.close()

    assert closed == [True]
    assert rows_in(tmp_path / "trace.jsonl")[-1]["end"] == {"cancelled": True}


def test_a_line_is_noted_before_it_is_handed_on(tmp_path: Path) -> None:
    """Our promise: what caused something stands before it."""
    trace = Trace(tmp_path / "trace.jsonl")
    sink = Sink()
    agent = trace.sink(sink)

    trace.listen(lambda line: agent.write(b'{"re": ' + line + b"}\n"))(b"1")
    trace.listen(lambda line: None)(b"caf\xe9\n")
    trace.close()

    assert sink.lines == [b'{"re": 1}\n']
    assert rows_in(tmp_path / "trace.jsonl") == [
        {"from": "editor", "frame": 1},
        {"from": "agent", "frame": {"re": 1}},
        {"from": "editor", "raw": "caf\\xe9"},
    ]


def test_secrets_are_found_by_the_names_of_their_variables() -> None:
    """Our promise: keys in the environment are replaced wherever they occur; short values are no keys."""
    environ = {
        "OPENAI_API_KEY": "key-long-and-more",
        "GITHUB_TOKEN": "key-long",
        "MINE": "by-setting",
        "PIN_TOKEN": "1234",
        "MONKEY": "no-secret-at-all",
        "HOME": "/home/of/somebody",
    }

    assert secrets_in(environ, ["MINE", "UNSET"]) == ["key-long-and-more", "by-setting", "key-long"]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"a": ["x KEYKEY y", 1, None]}, {"a": [f"x {HIDDEN} y", 1, None]}),
        ({"KEYKEY": 1}, {HIDDEN: 1}),
        (
            {"Authorization": "Bearer x", "x-api-key": ["y"], "api_key": None},
            {"Authorization": HIDDEN, "x-api-key": HIDDEN, "api_key": None},
        ),
        ({"name": "Cookie", "value": "x"}, {"name": "Cookie", "value": HIDDEN}),
        ({"name": "Other", "value": "x"}, {"name": "Other", "value": "x"}),
        (
            {"mcpServers": [{"name": "m", "headers": [{"name": "X", "value": "x"}, "y"]}, 1]},
            {"mcpServers": [{"name": "m", "headers": [{"name": "X", "value": HIDDEN}, HIDDEN]}, 1]},
        ),
        ({"mcpServers": [{"env": {"A": "x"}}]}, {"mcpServers": [{"env": {"A": HIDDEN}}]}),
        ({"mcpServers": [{"env": None}]}, {"mcpServers": [{"env": None}]}),
        ({"mcpServers": "none"}, {"mcpServers": "none"}),
    ],
)
def test_what_looks_like_a_secret_is_not_told(value: Json, told: Json) -> None:
    """Contracts 13: secrets dropped. Editors hand tokens to MCP servers in their environment and headers."""
    assert without_secrets(value, ["KEYKEY"]) == told


def test_a_torn_line_tells_no_secrets_either() -> None:
    """Our promise: a line that is no JSON may still be most of a session/new."""
    start = '{"name": "n", "mcpServers": [{"env": [{"name": "T", "value": "a\\"b"}]}], '
    line = start + '"password": "c", "v": "KEYKEY'

    assert raw_without_secrets(line, ["KEYKEY"]) == (
        f'{{"name": "n", "mcpServers": [{{"env": [{{"name": "T", "value": "{HIDDEN}"}}]}}], '
        f'"password": "{HIDDEN}", "v": "{HIDDEN}"'
    )
    assert raw_without_secrets('{"v": "x", "cookie": "y', []) == f'{{"v": "x", "cookie": "{HIDDEN}"'
