"""A sandbox from the command line to the disk: what was allowed is confined all the same."""

import shutil

import pytest

from tests.doubles.memory_model import CALLS, STOP
from tests.process.server import Server


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bubblewrap on this machine")
def test_a_command_that_was_allowed_still_writes_only_in_the_project(server: Server) -> None:
    """Issue "Acting with consent": `--sandbox workspace-write`; the card says so before anybody says yes."""
    outside = server.folder / "outside"
    line = f"echo a > in.txt; echo b > {outside}; cat {server.state}/config.toml"
    run = {"tool": "run_command", "id": "c1", "args": {"command": line}}
    server.model([run, CALLS], [{"text": "Done."}, STOP])
    server.launch(flags=["--sandbox", "workspace-write"])
    server.initialize()
    prompt = server.prompt(server.new_session())

    question = server.editor.wait_request("session/request_permission")
    outcome = {"outcome": "selected", "optionId": "allow_once"}
    server.editor.answer(question["id"], result={"outcome": outcome})
    server.editor.wait_response(prompt)

    assert "In a sandbox: writes only in the project, without network." in str(question)
    done = str(server.editor.wait_update({"toolCallId": "c1", "status": "completed"}))
    assert "config.toml: No such file or directory" in done
    assert "scripted" not in done
    assert (server.cwd / "in.txt").read_text() == "a\n"
    assert not outside.exists()
    assert server.leave() == 0
