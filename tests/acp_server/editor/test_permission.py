"""Asking the person: only a clear yes is one."""

from pathlib import Path
from typing import Any

import pytest
from acp import schema

from tests.doubles.memory_editor import connected
from tests.doubles.memory_model import MemoryModel, calls

WRITE = calls(("call-7", "write", {"path": "a.txt", "content": "x"}))

NOT_A_YES: list[dict[str, Any]] = [
    {"result": {"outcome": {"outcome": "selected", "optionId": "reject_once"}}},
    {"result": {"outcome": {"outcome": "selected", "optionId": "allow_always"}}},
    {"result": {"outcome": {"outcome": "selected"}}},
    {"result": {"outcome": {"outcome": "allowed", "optionId": "allow_once"}}},
    {"result": {"outcome": {"outcome": "cancelled"}}},
    {"result": {"outcome": "allow_once"}},
    {"result": {"optionId": "allow_once"}},
    {"result": {}},
    {"result": None},
    {"result": "allow_once"},
    {"error": {"code": -32800, "message": "Request cancelled"}},
    {"error": {"code": -32601, "message": "Method not found"}},
    {"error": "no"},
]


async def test_the_person_is_asked_about_the_very_card_they_see(tmp_path: Path) -> None:
    """copilot-cli#989, gemini-cli#21783: another id, or a call never announced."""
    async with connected(tmp_path, MemoryModel(WRITE)) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)

        question = await editor.asked()

        card = await editor.update(sessionUpdate="tool_call")
        asked = question["params"]
        schema.RequestPermissionRequest.model_validate(asked)
        assert asked["sessionId"] == session
        assert asked["toolCall"] == {
            key: value for key, value in card.items() if key not in ("sessionUpdate", "name")
        }
        assert [option["kind"] for option in asked["options"]] == [
            "allow_once",
            "allow_always",
            "allow_always",
            "reject_once",
            "reject_always",
        ]
        assert len({option["optionId"] for option in asked["options"]}) == 5
        assert [u.get("status") for u in editor.updates()] == ["pending"]
        editor.answer(question, "allow_once")
        assert await editor.result(prompt) == {"stopReason": "end_turn"}
        assert [u["status"] for u in editor.updates() if "status" in u] == [
            "pending",
            "in_progress",
            "completed",
        ]


@pytest.mark.parametrize("answer", NOT_A_YES, ids=str)
async def test_anything_but_a_clear_yes_is_a_no(answer: dict[str, Any], tmp_path: Path) -> None:
    """copilot-cli#845: denial means the file is absent, the model is told, and the turn goes on."""
    model = MemoryModel(WRITE)
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        question = await editor.asked()

        editor.say(id=question["id"], **answer)
        result = await editor.result(prompt)

        assert result == {"stopReason": "end_turn"}
        assert not (Path(editor.cwd) / "a.txt").exists()
        assert [u["status"] for u in editor.updates() if "status" in u] == ["pending", "failed"]
        assert "Permission denied" in str(model.requests[1].messages[-1])


async def test_two_calls_ask_one_after_the_other_each_by_its_id(tmp_path: Path) -> None:
    """copilot-cli#989: real call ids, equal to the cards'."""
    both = calls(
        ("c1", "write", {"path": "a.txt", "content": "x"}), ("c2", "write", {"path": "b.txt", "content": "y"})
    )
    async with connected(tmp_path, MemoryModel(both)) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)

        editor.answer(await editor.asked(1), "reject_once")
        editor.answer(await editor.asked(2), "allow_once")
        await editor.result(prompt)

        asked = [question["params"]["toolCall"]["toolCallId"] for question in editor.questions()]
        assert asked == ["c1", "c2"]
        assert sorted(path.name for path in Path(editor.cwd).iterdir()) == ["b.txt"]
