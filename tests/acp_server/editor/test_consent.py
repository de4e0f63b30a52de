"""Approved is what runs: between the question and the yes the world may change, and then nothing is done."""

import os
import re
from pathlib import Path

import pytest
from anyio import to_thread

from acp_server import cli
from agent_loop import find_ripgrep
from agent_loop.plugins.permission.plugin import DENIED
from tests.doubles.memory_editor import connected
from tests.doubles.memory_model import MemoryModel, calls, says

A_TIME = re.compile(r"[0-9-]{10} [0-9:]{5},")
WRITE = calls(("c1", "write", {"path": "sub/a.txt", "content": "new\n"}))


async def refused(tmp_path: Path, change: str) -> tuple[str, Path]:
    """What the model reads after a write was allowed while the file changed; and the project."""
    project, outside = tmp_path / "project", tmp_path / "outside"
    (project / "sub").mkdir(parents=True)
    outside.mkdir()
    (project / "sub" / "a.txt").write_text("old\n")
    model = MemoryModel(WRITE, says("Done."))
    async with connected(tmp_path, model) as editor:
        prompt = editor.prompt(await editor.new_session())
        question = await editor.asked()

        match change:
            case "content":
                (project / "sub" / "a.txt").write_text("mine\n")
            case "gone":
                (project / "sub" / "a.txt").unlink()
            case "link":
                (project / "sub").rename(project / "was")
                (project / "sub").symlink_to(outside)
        editor.answer(question, "allow_once")
        await editor.result(prompt)

        return str(model.requests[1].messages[-1]), project


@pytest.mark.parametrize(("change", "words"), [("content", "changed since"), ("gone", "changed since")])
async def test_a_file_that_changed_while_its_person_thought_is_not_written(
    change: str, words: str, tmp_path: Path
) -> None:
    """Issue: the consent is bound to the preimage hash; the diff that was allowed is no longer the diff."""
    told, project = await refused(tmp_path, change)

    assert words in told
    assert [path.read_text() for path in project.rglob("a.txt")] == (
        ["mine\n"] if change == "content" else []
    )


async def test_a_link_put_in_the_way_leads_nowhere(tmp_path: Path) -> None:
    """Contract 13: enforcement is by real path, again right before the effect."""
    told, project = await refused(tmp_path, "link")

    assert "leads elsewhere" in told
    assert (project / "was" / "a.txt").read_text() == "old\n"
    assert os.listdir(tmp_path / "outside") == []


async def test_the_command_that_was_shown_is_the_command_that_ran(tmp_path: Path) -> None:
    """Issue: … and to the exact command; zed#57108: the request shows it verbatim."""
    line = "printf '%s' \"`echo '#x'`\"\n: second line"
    ask = calls(("c1", "run_command", {"command": f"{line} > shown.txt"}))
    model = MemoryModel(ask, says("Done."))
    async with connected(tmp_path, model) as editor:
        prompt = editor.prompt(await editor.new_session())
        question = await editor.asked()
        shown = question["params"]["toolCall"]

        editor.answer(question, "allow_once")
        await editor.result(prompt)

        assert shown["rawInput"] == {"command": f"{line} > shown.txt"}
        assert f"{line} > shown.txt" in shown["content"][0]["content"]["text"]
        assert (Path(editor.cwd) / "shown.txt").exists()


async def test_why_tells_of_a_call_as_it_was_decided(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue: who allowed what, by which rule, and what ran, from the stored log of a real conversation."""
    monkeypatch.setenv("TZ", "UTC")
    ask = calls(("c1", "run_command", {"command": "exit 3"}), ("c2", "write", {"path": "a", "content": "x"}))
    async with connected(tmp_path, MemoryModel(ask, says("Done."))) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        editor.answer(await editor.asked(1), "allow_session")
        editor.answer(await editor.asked(2), "reject_once")
        await editor.result(prompt)

    told = []
    for call in ("c1", "c2"):
        why = cli.parse(["--state-dir", str(tmp_path / "state"), "why", session[:8], call])
        assert await to_thread.run_sync(cli.run, why) == 0
        lines = capsys.readouterr().out.splitlines()
        told.append([" ".join(A_TIME.sub("", line).split()) for line in lines])

    asked = "asked by mode ask; offered allow_once, allow_session, allow_project, reject_once, reject_project"
    assert told == [
        [
            "call run_command c1, turn 1, step 1",
            asked,
            "decided allowed by the person (allow_session)",
            "ran with these arguments:",
            "command: exit 3",
            "ended exit 3 (ran)",
        ],
        [
            "call write c2, turn 1, step 1",
            asked,
            "decided denied by the person (reject_once)",
            f"ran nothing: {DENIED}",
        ],
    ]


@pytest.mark.skipif(find_ripgrep() is None, reason="ripgrep is not installed")
async def test_a_search_of_the_folder_does_not_tell_what_a_rule_keeps_back(tmp_path: Path) -> None:
    """Issue: a deny on a path holds whatever way leads there, as far as it can be seen."""
    project, state = tmp_path / "project", tmp_path / "state"
    for folder in (project, state):
        folder.mkdir()
    (project / "secret.txt").write_text("key = 4711\n")
    (project / "open.txt").write_text("key = none\n")
    (state / "config.toml").write_text(
        'format = 1\n[permission]\nrules = [{ effect = "deny", path = "secret.txt" }]\n'
    )
    model = MemoryModel(calls(("c1", "search", {"pattern": "key"})), says("Done."))
    async with connected(tmp_path, model) as editor:
        await editor.result(editor.prompt(await editor.new_session()))

    told = str(model.requests[1].messages[-1])
    assert "open.txt:1:key = none" in told
    assert "4711" not in told
    assert "secret.txt" not in told
