"""How the process ends: whatever it was doing, soon, with its log closed and nobody left behind.

claude-agent-acp PR530, zed#56146: 62 orphans on one machine. opencode#11716, t3code PR4881: signals ignored.
"""

import signal

import pytest

from tests.doubles.memory_model import Item
from tests.process.server import DONE, Server

STREAM: list[Item] = [{"text": "One, "}, {"text": "two, "}, {"hang": True}]
WRITE: list[Item] = [
    {"tool": "write", "id": "c1", "args": {"path": "a.txt", "content": "x"}},
    {"finish": "tool_calls"},
]
CALL = {"finish": "tool_calls"}


def end(server: Server, how: str) -> int:
    """End it by closing stdin or with a signal; the exit code."""
    if how == "eof":
        return server.leave()
    server.editor.signal(how)
    return server.exit_soon()


ways = pytest.mark.parametrize("how", ["eof", "TERM", "INT"])


@ways
def test_idle_right_after_the_handshake(how: str, server: Server) -> None:
    """Scenarios B11, B12."""
    server.start()
    server.initialize()

    assert end(server, how) == 0
    assert server.editor.stderr == ""


def test_before_anything_was_said(server: Server) -> None:
    """Scenario B11: an editor that only looked whether there is a server."""
    server.start()

    assert server.leave() == 0


@ways
def test_in_the_middle_of_a_stream(how: str, server: Server) -> None:
    """Scenarios B11, B12: the log ends with a closed turn, and the prompt has its answer."""
    server.start(STREAM)
    server.initialize()
    session = server.new_session()
    prompt = server.prompt(session)
    server.editor.wait_update({"content": {"text": "two, "}}, session)

    assert end(server, how) == 0

    assert server.ends(session) == [{"kind": "disposed"}]
    assert server.editor.wait_response(prompt)["result"] == {"stopReason": "cancelled"}


@ways
def test_while_a_command_sleeps(how: str, server: Server) -> None:
    """Scenarios B11, B12: no child is left."""
    server.start([server.sleeping, CALL])
    server.initialize()
    session = server.run_the_sleeper()

    assert end(server, how) == 0

    assert server.children() == []
    assert server.ends(session) == [{"kind": "disposed"}]
    [result] = [fact for fact in server.facts(session) if fact["type"] == "tool/result"]
    assert result["data"]["outcome"] == "interrupted"


@ways
def test_while_the_person_is_asked(how: str, server: Server) -> None:
    """Scenario B11: end of input with a permission open."""
    server.start(WRITE)
    server.initialize()
    session = server.new_session()
    server.prompt(session)
    server.editor.wait_request("session/request_permission")

    assert end(server, how) == 0

    assert server.ends(session) == [{"kind": "disposed"}]
    assert list(server.cwd.iterdir()) == []


def test_with_a_command_that_will_not_leave(server: Server) -> None:
    """Contracts 13: the kill grace is short when shutting down."""
    stubborn = f"trap '' TERM HUP INT; echo begun; while :; do sleep {server.marker}; done"
    server.start([{"tool": "run_command", "id": "c1", "args": {"command": stubborn}}, CALL])
    server.initialize()
    session = server.run_the_sleeper()

    assert server.leave() == 0

    assert server.children() == []
    assert server.ends(session) == [{"kind": "disposed"}]


def test_with_many_sessions_at_work(server: Server) -> None:
    """Seed, multi-session.spec: all of them are drained when dispose returns."""
    server.start(*[STREAM] * 8, apart=True)
    server.initialize()
    sessions = [server.new_session() for _ in range(8)]
    for session in sessions:
        server.prompt(session)
    for session in sessions:
        server.editor.wait_update({"sessionUpdate": "agent_message_chunk"}, session)

    assert server.leave() == 0

    assert [server.ends(session) for session in sessions] == [[{"kind": "disposed"}]] * 8


def test_with_a_session_on_its_way(server: Server) -> None:
    """Scenario B11: end of input during session/new."""
    editor = server.start()
    server.initialize()
    editor.request("session/new", {"cwd": str(server.cwd)})

    assert server.leave() == 0


def test_an_unterminated_last_line_is_answered_before_the_end(server: Server) -> None:
    """Contracts 13: an unterminated last line is processed if it parses."""
    editor = server.start()
    editor.write_bytes(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}')

    assert server.leave() == 0

    assert editor.wait_response(1)["result"]["protocolVersion"] == 1


def test_a_second_signal_ends_it_at_once_and_kills_what_runs(server: Server) -> None:
    """Contracts 13: a second signal kills the groups and exits."""
    server.start([server.sleeping, CALL])
    server.initialize()
    server.run_the_sleeper()

    server.editor.signal("TERM")
    server.editor.signal("INT")
    code = server.exit_soon()

    # The first one alone may have been quick enough.
    assert code in (0, 128 + signal.SIGINT, 128 + signal.SIGTERM)
    assert server.children() == []


def test_a_killed_process_loses_no_session_it_had_answered_for(server: Server) -> None:
    """Contracts 8: the header is on disk before session/new answers."""
    editor = server.start(DONE)
    server.initialize()
    session = server.new_session()
    editor.signal("KILL")
    assert editor.wait_exit() == -signal.SIGKILL

    editor.start()
    server.initialize()

    assert "result" in server.load(session)
    assert server.run(session)["result"] == {"stopReason": "end_turn"}
    assert server.leave() == 0
