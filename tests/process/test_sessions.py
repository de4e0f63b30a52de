"""Sessions as an editor opens them: at once, many, wrong, and again after a restart."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.doubles.memory_model import Item
from tests.process.server import DONE, INITIALIZE, OPENED, Server

STREAM: list[Item] = [{"text": "One."}, {"hang": True}]
HOSTILE = ["nope", "", "../../etc/passwd", "..", "a/b", "\x00", "x" * 10_000, "é", "con"]


def files(server: Server) -> set[Path]:
    """Everything there is below the state directory, logs of the server apart."""
    return {path for path in server.state.rglob("*") if "log" not in path.relative_to(server.state).parts}


def test_two_sessions_asked_for_in_one_write_are_two(server: Server) -> None:
    """codecompanion.nvim#3367: two session/new at once, ids mixed."""
    editor = server.start(*[DONE] * 2, apart=True)
    server.initialize()
    new = {"method": "session/new", "params": {"cwd": str(server.cwd), "mcpServers": []}}

    editor.write([{"id": "a", **new}, {"id": "b", **new}])
    sessions = [editor.wait_response(key)["result"]["sessionId"] for key in ("a", "b")]
    prompts = [server.prompt(session) for session in sessions]

    assert sessions[0] != sessions[1]
    assert [editor.wait_response(prompt)["result"]["stopReason"] for prompt in prompts] == ["end_turn"] * 2
    assert {line.session for line in editor.transcript if line.update} == set(sessions)
    assert server.leave() == 0


def test_the_first_line_that_names_a_session_is_its_answer(server: Server) -> None:
    """zed#60199: news of a session before the answer that names it was dropped, or made the editor spin."""
    editor = server.start(*[DONE] * 10, apart=True)
    server.initialize()
    new = {"method": "session/new", "params": {"cwd": str(server.cwd), "mcpServers": []}}

    editor.write([{"id": f"n{number}", **new} for number in range(10)])
    sessions = [editor.wait_response(f"n{number}")["result"]["sessionId"] for number in range(10)]
    for prompt in [server.prompt(session) for session in sessions]:
        editor.wait_response(prompt)

    assert len(set(sessions)) == 10
    for number, session in enumerate(sessions):
        first = next(line for line in editor.transcript if session in json.dumps(line.frame))
        assert first.request_id == f"n{number}"
    assert server.leave() == 0


def test_a_directory_alone_is_enough_and_the_servers_own_is_none_of_it(server: Server) -> None:
    """ACP, session setup: cwd, wherever the process was started; kimi-cli#764: mcpServers left out."""
    call = {"tool": "run_command", "id": "c1", "args": {"command": "pwd"}}
    editor = server.start([call, {"finish": "tool_calls"}], DONE)
    server.initialize()
    session = editor.call("session/new", {"cwd": str(server.cwd)})["result"]["sessionId"]
    prompt = server.prompt(session)

    server.allow()
    done = editor.wait_update({"toolCallId": "c1", "status": "completed"}, session)
    editor.wait_response(prompt)

    assert str(server.cwd.resolve()) in json.dumps(done)
    assert server.leave() == 0


@pytest.mark.parametrize("hostile", HOSTILE, ids=lambda text: repr(text[:20]))
def test_an_id_nobody_made_is_not_found_and_makes_nothing(hostile: str, server: Server) -> None:
    """hermes-agent#74678, acpx#152: the same not-found error for load and prompt; nothing on disk."""
    editor = server.start()
    server.initialize()
    before = files(server)
    blocks = [{"type": "text", "text": "Hello."}]
    setup = {"cwd": str(server.cwd), "mcpServers": []}

    errors = [
        editor.call("session/load", {"sessionId": hostile, **setup})["error"],
        editor.call("session/prompt", {"sessionId": hostile, "prompt": blocks})["error"],
    ]
    editor.notify("session/cancel", {"sessionId": hostile})
    editor.sync()

    assert [(error["code"], error["data"]) for error in errors] == [
        (-32002, {"sessionId": hostile[:200]})
    ] * 2
    assert files(server) == before
    assert server.leave() == 0


@pytest.mark.parametrize("method", ["session/new", "session/load"])
@pytest.mark.parametrize("cwd", ["project", "", "./", "/nowhere/at/all", None, 5])
def test_a_directory_that_is_none_is_refused_by_name(method: str, cwd: object, server: Server) -> None:
    """codecompanion.nvim#2860: real parameter errors name the path in `error.data`."""
    editor = server.start(DONE)
    server.initialize()
    stored = server.new_session()
    before = files(server)

    error = editor.call(method, {"sessionId": stored, "cwd": cwd, "mcpServers": []})["error"]

    assert (error["code"], error["data"]) == (-32602, {"path": "cwd"})
    assert files(server) == before
    assert server.run(stored)["result"] == {"stopReason": "end_turn"}
    assert server.leave() == 0


@pytest.mark.parametrize(
    ("prompt", "path"),
    [
        ([{"type": "image", "data": "AA==", "mimeType": "image/png"}], "prompt[0].type"),
        ([{"type": "text", "text": "See"}, {"type": "audio", "data": "", "mimeType": "x"}], "prompt[1].type"),
        ([], "prompt"),
        ([{"type": "text", "text": ""}], "prompt"),
        ([{"type": "text", "text": " \n"}], "prompt"),
        ("Hello.", "prompt"),
        (None, "prompt"),
    ],
)
def test_what_is_no_prompt_is_refused_and_the_model_is_not_called(
    prompt: Any, path: str, server: Server
) -> None:
    """avante.nvim#2905: an empty prompt. The script has one answer, for the prompt that is one."""
    editor = server.start(DONE)
    server.initialize()
    session = server.new_session()

    error = editor.call("session/prompt", {"sessionId": session, "prompt": prompt})["error"]

    assert (error["code"], error["data"]) == (-32602, {"path": path})
    assert server.run(session)["result"] == {"stopReason": "end_turn"}
    assert server.leave() == 0


def test_a_session_at_work_cannot_be_loaded(server: Server) -> None:
    """Contracts 4: while running, -32600 "busy"; idle, it is replayed from the live log."""
    editor = server.start(STREAM)
    server.initialize()
    session = server.new_session()
    prompt = server.prompt(session)
    editor.wait_update({"content": {"text": "One."}}, session)

    error = server.load(session)["error"]
    editor.notify("session/cancel", {"sessionId": session})
    editor.wait_response(prompt)

    assert (error["code"], error["data"]["kind"]) == (-32600, "busy")
    assert server.leave() == 0


def test_a_restarted_server_knows_its_sessions_and_no_other_directory_for_them(server: Server) -> None:
    """ACP, loading sessions; contracts 5: a mismatching cwd is -32602."""
    editor = server.start(DONE)
    server.initialize()
    session = server.new_session()
    server.run(session)
    assert server.leave() == 0
    editor.start()
    server.initialize()

    elsewhere = {"sessionId": session, "cwd": str(server.home), "mcpServers": []}
    error = editor.call("session/load", elsewhere)["error"]
    result = server.load(session)["result"]

    assert (error["code"], error["data"], set(result)) == (-32602, {"path": "cwd"}, OPENED)
    said = [it.update["content"]["text"] for it in editor.transcript if "content" in it.update]
    assert said[-1] == "Done."
    assert server.leave() == 0


def test_initialize_may_be_called_again(server: Server) -> None:
    """ACP as its SDK reads it: a repeated initialize is accepted in v1."""
    editor = server.start(DONE)

    first = editor.call("initialize", INITIALIZE)
    session = server.new_session()
    again = editor.call("initialize", {"protocolVersion": 99})

    assert first["result"] == again["result"]
    assert server.run(session)["result"] == {"stopReason": "end_turn"}
    assert server.leave() == 0
