"""Everything stdin, stdout and stderr may be, and whatever the other side does with them."""

import json
import os
import subprocess
import time
from pathlib import Path
from typing import IO, Any

import pytest

from tests.process.server import EXIT_S, INITIALIZE, WAIT_S, Server

CALL = {"finish": "tool_calls"}
HANDSHAKE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE}) + "\n"


def launch(
    server: Server, stdin: Any, stdout: Any, stderr: Any = subprocess.DEVNULL
) -> "subprocess.Popen[bytes]":
    """The server on any three descriptors."""
    return subprocess.Popen(
        server.argv(), cwd=server.home, env=server.env, stdin=stdin, stdout=stdout, stderr=stderr
    )


def ended(process: "subprocess.Popen[bytes]") -> int:
    """Its exit code, which must come by itself."""
    try:
        return process.wait(WAIT_S)
    finally:
        process.kill()
        process.wait()


def frames(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def test_stdin_may_be_a_file_and_stdout_too(server: Server) -> None:
    """Contracts 13: Protocols refuse files; a script of lines is a fair way to try a server."""
    (server.folder / "in").write_text(HANDSHAKE)

    with open(server.folder / "in", "rb") as stdin, open(server.folder / "out", "wb") as stdout:
        code = ended(launch(server, stdin, stdout))

    [answer] = frames((server.folder / "out").read_bytes())
    assert (code, answer["result"]["protocolVersion"]) == (0, 1)


def test_stdin_may_be_the_null_device(server: Server) -> None:
    """Contracts 13: a Protocol hangs on the null device for ever."""
    process = launch(server, subprocess.DEVNULL, subprocess.PIPE)
    assert process.stdout is not None

    with process.stdout:
        assert process.stdout.read() == b""
    assert ended(process) == 0


def test_stdout_may_be_full(server: Server) -> None:
    """Our promise: a full disk behind stdout ends the server; it neither spins nor hangs."""
    (server.folder / "in").write_text(HANDSHAKE)

    with open(server.folder / "in", "rb") as stdin, open("/dev/full", "wb") as stdout:
        assert ended(launch(server, stdin, stdout)) == 0


def test_an_editor_that_closes_its_end_of_stdout_ends_the_server(server: Server) -> None:
    """Contracts 13: EPIPE is like end of input; the log is closed and the exit code is 0."""
    server.model([{"text": "heard"}, {"hold": "go"}, {"text": "unheard"}, {"hang": True}], directed=True)
    process = launch(server, subprocess.PIPE, subprocess.PIPE)
    control = server.control
    assert control is not None
    assert process.stdin is not None
    assert process.stdout is not None
    session = begin(server, process.stdin, process.stdout)
    assert b"heard" in process.stdout.readline()
    with control.changed:
        assert control.changed.wait_for(lambda: control.held("go"), WAIT_S)

    process.stdout.close()
    control.release("go")

    assert ended(process) == 0
    assert server.ends(session) == [{"kind": "disposed"}]
    process.stdin.close()


def test_nobody_has_to_read_stderr(server: Server) -> None:
    """ACP, transports: clients may never read it, so writing there must not block the server."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    try:
        while os.write(writing, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(writing, True)
    noise = "seq 1 20000 >&2; seq 1 20000"
    server.model(
        [{"tool": "run_command", "id": "c1", "args": {"command": noise}}, CALL],
        [{"text": "ok"}, {"finish": "stop"}],
    )
    process = launch(server, subprocess.PIPE, subprocess.PIPE, writing)
    os.close(writing)
    assert process.stdin is not None
    assert process.stdout is not None

    begin(server, process.stdin, process.stdout)
    said = answer_questions(process.stdin, process.stdout)

    assert said[-1] == {"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "end_turn"}}
    process.stdin.close()
    assert ended(process) == 0
    os.close(reading)
    process.stdout.close()


def begin(server: Server, stdin: IO[bytes], stdout: IO[bytes]) -> str:
    """Handshake, session and prompt, spoken by hand; the session's id."""
    stdin.write(HANDSHAKE.encode())
    new = {"id": 2, "method": "session/new", "params": {"cwd": str(server.cwd)}}
    stdin.write(json.dumps(new).encode() + b"\n")
    stdin.flush()
    stdout.readline()
    session = str(json.loads(stdout.readline())["result"]["sessionId"])
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "Hello."}]}
    stdin.write(json.dumps({"id": 3, "method": "session/prompt", "params": params}).encode() + b"\n")
    stdin.flush()
    return session


def answer_questions(stdin: IO[bytes], stdout: IO[bytes]) -> list[dict[str, Any]]:
    """Allow whatever is asked until the prompt is answered; all that was said."""
    said: list[dict[str, Any]] = []
    for line in stdout:
        said.append(json.loads(line))
        if said[-1].get("method") == "session/request_permission":
            outcome = {"outcome": "selected", "optionId": "allow_once"}
            answer = {"id": said[-1]["id"], "result": {"outcome": outcome}}
            stdin.write(json.dumps(answer).encode() + b"\n")
            stdin.flush()
        if said[-1].get("id") == 3 and "method" not in said[-1]:
            break
    return said


@pytest.mark.parametrize(
    "command",
    [
        'echo noise; echo \'{"jsonrpc":"2.0"}\' >&1; echo more',
        "cat; echo read all",
        "ls -l /proc/self/fd; sleep 0.01 >&- 2>&-; echo x >/dev/stdout",
    ],
)
def test_a_commands_output_and_input_are_never_the_protocols(command: str, server: Server) -> None:
    """opencode#13634: children on stdout; codex-acp#177: children that read the editor's lines."""
    read = {"tool": "run_command", "id": "c1", "args": {"command": command, "timeout_s": 5}}
    server.start([read, CALL], [{"text": "Done."}, {"finish": "stop"}])
    server.initialize()
    session = server.new_session()

    prompt = server.prompt(session)
    server.allow()
    for _ in range(20):
        server.editor.sync()

    assert server.editor.wait_response(prompt)["result"] == {"stopReason": "end_turn"}
    assert server.editor.problems == []
    assert server.leave() == 0
    [result] = [fact["data"] for fact in server.facts(session) if fact["type"] == "tool/result"]
    assert not result["exit"].get("timedOut")


def test_a_reader_that_stops_for_a_while_bounds_the_memory_and_a_cancel_is_heard(server: Server) -> None:
    """Contracts 7, agent/pace: a slow editor pauses the stream, never the cancel nor the reader."""
    server.model([*({"text": "x" * 4000} for _ in range(20_000)), {"finish": "stop"}])
    process = launch(server, subprocess.PIPE, subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    session = begin(server, process.stdin, process.stdout)
    process.stdout.readline()
    before = resident_kib(process.pid)

    grown = most_grown(process.pid, before, seconds=3.0)
    cancel = {"method": "session/cancel", "params": {"sessionId": session}}
    process.stdin.write(json.dumps(cancel).encode() + b"\n")
    process.stdin.flush()
    said = answer_questions(process.stdin, process.stdout)

    assert said[-1]["result"] == {"stopReason": "cancelled"}
    # Eighty megabytes were to be said. What fills the pipe and one pause is a megabyte or two.
    assert grown < 30_000
    assert len(said) < 300
    process.stdin.close()
    assert ended(process) == 0
    process.stdout.close()


def most_grown(pid: int, before: int, *, seconds: float) -> int:
    """By how many KiB a process grew at most while nobody read for so long: the wait is the scenario."""
    most, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        most = max(most, resident_kib(pid) - before)
        time.sleep(0.05)
    return most


def resident_kib(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


def test_an_editor_that_never_reads_cannot_keep_the_server(server: Server) -> None:
    """Contracts 13: draining at the end is bounded."""
    server.model([*({"text": "x" * 4000} for _ in range(200)), {"hang": True}])
    process = launch(server, subprocess.PIPE, subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    session = begin(server, process.stdin, process.stdout)
    process.stdout.readline()

    process.stdin.close()
    code = process.wait(EXIT_S + 1.0)

    assert code == 0
    assert server.ends(session) == [{"kind": "disposed"}]
    process.stdout.close()
