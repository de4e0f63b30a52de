"""Every mode, rule and answer together, with the file system as witness: no clear yes, no trace."""

import itertools
from pathlib import Path
from typing import Any, get_args

import pytest

from agent_loop import PermissionMode
from tests.doubles.memory_editor import MemoryEditor, connected
from tests.doubles.memory_model import MemoryModel, calls, says
from tests.doubles.worker import Worker

RULES = ("none", "allow", "ask", "deny")
ANSWERS: dict[str, dict[str, Any]] = {
    "allow": {"result": {"outcome": {"outcome": "selected", "optionId": "allow_once"}}},
    "deny": {"result": {"outcome": {"outcome": "selected", "optionId": "reject_once"}}},
    "cancel": {"result": {"outcome": {"outcome": "cancelled"}}},
    "error": {"error": {"code": -32603, "message": "no dialog"}},
    "unknown option": {"result": {"outcome": {"outcome": "selected", "optionId": "allow_everything"}}},
}
TOOLS = {
    "write": ("write", {"path": "trace.txt", "content": "x"}),
    "execute": ("run_command", {"command": "echo x > trace.txt"}),
}


def expected(mode: str, rule: str, kind: str) -> str:
    """Whether the call runs, is refused, or asks."""
    if rule == "deny" or mode == "plan":
        return "refused"
    if rule != "none":
        return "asks" if rule == "ask" else "runs"
    free = mode == "full-auto" or (mode, kind) == ("accept-edits", "write")
    return "runs" if free else "asks"


def flags(folder: Path, mode: str, rule: str, kind: str) -> dict[str, str | None]:
    """The mode as a flag, the rule in the settings file."""
    (folder / "state").mkdir()
    rules = "" if rule == "none" else f'[[permission.rules]]\neffect = "{rule}"\nkind = "{kind}"\n'
    (folder / "state" / "config.toml").write_text(f"format = 1\n{rules}")
    return {"permission_mode": mode}


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize(("mode", "rule"), [*itertools.product(get_args(PermissionMode), RULES)])
async def test_a_call_leaves_a_trace_only_where_it_may(
    mode: PermissionMode, rule: str, kind: str, tmp_path: Path
) -> None:
    """Issue: permission matrix; a denied call leaves no trace on disk in any mode."""
    name, arguments = TOOLS[kind]
    wanted = expected(mode, rule, kind)
    # Those that ask never differ by answer where nobody is asked.
    answers = ANSWERS if wanted == "asks" else {"allow": ANSWERS["allow"]}
    script = [line for _ in answers for line in (calls(("c1", name, arguments)), says("Done."))]
    model = MemoryModel(*script)
    async with connected(tmp_path, model, flags=flags(tmp_path, mode, rule, kind)) as editor:
        trace = Path(editor.cwd) / "trace.txt"
        for number, (answer, said) in enumerate(answers.items(), 1):
            prompt = editor.prompt(await editor.new_session())
            if wanted == "asks":
                question = await editor.asked(number)
                assert not trace.exists()
                editor.say(id=question["id"], **said)

            assert await editor.result(prompt) == {"stopReason": "end_turn"}

            assert trace.exists() is (wanted == "runs" or (wanted, answer) == ("asks", "allow"))
            trace.unlink(missing_ok=True)
        assert len(editor.questions()) == (len(answers) if wanted == "asks" else 0)
        assert list(Path(editor.cwd).iterdir()) == []


@pytest.mark.parametrize("kind", TOOLS)
@pytest.mark.parametrize("end", ["cancel", "close"])
async def test_a_person_who_never_answers_blocks_their_own_session_only(
    kind: str, end: str, tmp_path: Path
) -> None:
    """Issue: a client that never answers; a cancel resolves the open request at once, and nothing is done."""
    name, arguments = TOOLS[kind]
    model = MemoryModel(calls(("c1", name, arguments)), says("Meanwhile."))
    async with connected(tmp_path, model) as editor:
        silent, other = await editor.new_session(), await editor.new_session()
        blocked = editor.prompt(silent)
        question = await editor.asked()

        assert await editor.result(editor.prompt(other)) == {"stopReason": "end_turn"}
        assert not editor.answered_yet(blocked)
        assert (
            await editor.result(editor.send("session/set_mode", sessionId=silent, modeId="full-auto")) == {}
        )

        if end == "cancel":
            editor.cancel(silent)
        else:
            editor.send("session/close", sessionId=silent)
        assert await editor.result(blocked) == {"stopReason": "cancelled"}
        await editor.until(lambda: withdrawn(editor) == [question["id"]], "the question to be withdrawn")
        editor.answer(question, "allow_once")
        assert await editor.result(editor.prompt(other)) == {"stopReason": "end_turn"}
        assert list(Path(editor.cwd).iterdir()) == []


def withdrawn(editor: MemoryEditor) -> list[Any]:
    """The requests of ours that we take back."""
    frames = [line.frame or {} for line in editor.transcript if line.sender == "agent"]
    return [frame["params"]["requestId"] for frame in frames if frame.get("method") == "$/cancel_request"]


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))], ids=str)
async def test_questions_asked_side_by_side_are_answered_in_any_order(
    order: tuple[int, ...], tmp_path: Path
) -> None:
    """Issue: parallel requests answered in any order; each answer belongs to its own call."""
    both = calls(*((f"c{n}", "work", {"job": str(n), "safe": True, "effect": "write"}) for n in range(3)))
    worker = Worker()
    async with connected(tmp_path, MemoryModel(both, says("Done."))) as editor:
        editor.harness.tools.register(worker)
        prompt = editor.prompt(await editor.new_session())
        await editor.asked(3)
        by_call = {question["params"]["toolCall"]["toolCallId"]: question for question in editor.questions()}

        for number in order:
            editor.answer(by_call[f"c{number}"], "reject_once" if number == 1 else "allow_once")
        await editor.result(prompt)

        assert sorted(worker.began) == ["c0", "c2"]
        ends = {
            u["toolCallId"]: u["status"]
            for u in editor.updates()
            if u.get("status") in ("completed", "failed")
        }
        assert ends == {"c0": "completed", "c1": "failed", "c2": "completed"}


async def test_two_sessions_ask_at_once_and_are_answered_crosswise(tmp_path: Path) -> None:
    """Issue: parallel requests answered in any order, across sessions, too."""
    one = calls(("c1", "write", {"path": "one.txt", "content": "1"}))
    two = calls(("c1", "write", {"path": "two.txt", "content": "2"}))
    async with connected(tmp_path, MemoryModel(one, two)) as editor:
        first, second = await editor.new_session(), await editor.new_session()
        prompts = []
        for number, session in enumerate((first, second), 1):
            prompts.append(editor.prompt(session))
            await editor.asked(number)

        editor.answer(editor.questions()[1], "allow_once")
        assert await editor.result(prompts[1]) == {"stopReason": "end_turn"}
        assert not editor.answered_yet(prompts[0])
        editor.answer(editor.questions()[0], "reject_once")
        await editor.result(prompts[0])

        assert [path.name for path in Path(editor.cwd).iterdir()] == ["two.txt"]
