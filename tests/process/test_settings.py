"""Settings that cannot work: the handshake does, and session/new says what to mend."""

import os
from typing import Any

import pytest

from tests.process.server import Server


def refused(server: Server, *flags: str) -> dict[str, Any]:
    """The error of session/new, behind a handshake that works."""
    editor = server.launch(flags=flags)
    server.initialize()
    error = editor.call("session/new", {"cwd": str(server.cwd), "mcpServers": []})["error"]
    load = editor.call("session/load", {"sessionId": "s", "cwd": str(server.cwd), "mcpServers": []})
    assert server.leave() == 0
    assert load["error"]["code"] == error["code"]
    return dict(error)


def test_without_a_model_the_person_is_told_how_to_choose_one(server: Server) -> None:
    """Contracts 5: -32000 naming `--model` and the variable; never a silent default."""
    error = refused(server)

    assert error["code"] == -32000
    assert "--model" in error["message"]
    assert "OPENAI_API_KEY" in error["message"]


def test_without_a_key_the_person_is_told_its_variable(server: Server) -> None:
    """Contracts 5: an endpoint that needs a key and has none, environment look-up only."""
    error = refused(server, "--model", "openai/gpt-5")

    assert error["code"] == -32000
    assert "OPENAI_API_KEY" in error["message"]


@pytest.mark.parametrize("model", ["nobody/nothing", "gpt-5", "/x", "openai/"])
def test_a_model_that_leads_nowhere_is_a_settings_error(model: str, server: Server) -> None:
    """Contracts 11."""
    error = refused(server, "--model", model)

    assert (error["code"], error["data"]) == (-32603, {"kind": "config", "path": "--model"})
    assert model in error["message"]


@pytest.mark.parametrize(
    ("text", "line"),
    [("format = 1\n[agent\n", 2), ("format = 1\n[agent]\nmodel = 5\n", 3), ("format = 2\n", 1)],
)
def test_a_broken_file_is_told_with_its_place(text: str, line: int, server: Server) -> None:
    """Contracts 11: bad syntax lets initialize work and fails session/new with path and line."""
    path = server.state / "config.toml"
    path.write_text(text)

    error = refused(server)

    assert (error["code"], error["data"]) == (-32603, {"kind": "config", "path": str(path), "line": line})


def test_an_agent_of_the_settings_runs_beside_the_editors_and_ends_with_the_server(server: Server) -> None:
    """Contracts 11, `[[agents]]`: the editor is not told of it."""
    agents = [{"id": "helper", "model": "demo/demo"}]
    server.settings({"format": 1, "agent": {"model": "demo/demo"}, "agents": agents})
    editor = server.launch()
    server.initialize()
    session = server.new_session()

    assert server.leave() == 0

    stored = [path.name for path in server.state.glob("sessions/*/*.jsonl")]
    assert sorted(name.startswith("helper-session-") for name in stored) == [False, True]
    assert f"{session}.jsonl" in stored
    assert [line for line in editor.transcript if "helper" in str(line.frame)] == []


def test_nothing_below_the_workspace_is_read_as_settings(server: Server) -> None:
    """Contracts 11: a cloned repository must not choose an address or full-auto."""
    for place in (server.cwd, server.cwd / ".acp-server"):
        place.mkdir(exist_ok=True)
        (place / "config.toml").write_text('format = 1\n[agent]\nmodel = "demo/demo"\n')

    assert refused(server)["code"] == -32000


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_read_only_state_directory_is_told_in_words(server: Server) -> None:
    """Contracts 5: an error in words, and quickly."""
    server.state.chmod(0o500)

    error = refused(server, "--model", "demo/demo")

    assert (error["code"], error["data"]["kind"]) == (-32603, "io")


def test_a_state_directory_that_cannot_be_made_is_told_in_words(server: Server) -> None:
    """The same where the superuser runs the tests: a file stands in the way."""
    server.state.rmdir()
    server.state.write_text("a file")

    editor = server.launch(flags=("--model", "demo/demo"))
    server.initialize()
    error = editor.call("session/new", {"cwd": str(server.cwd), "mcpServers": []})["error"]

    assert error["code"] == -32603
    assert error["data"]["kind"] in ("io", "config")
    assert "Traceback" not in str(error)
    assert server.leave() == 0
    server.state.unlink()
    server.state.mkdir()
