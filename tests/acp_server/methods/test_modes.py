"""`session/set_mode` and the `mode` config option: two ways to say one thing, kept in step."""

from pathlib import Path
from typing import Any, get_args

import pytest
from acp import schema

from acp_server.options.config_options import config_options
from acp_server.options.modes import modes
from agent_loop import PermissionMode
from tests.doubles.memory_editor import ONE_MODEL, MemoryEditor, connected
from tests.doubles.memory_model import MemoryModel, calls, says

WRITE = calls(("c1", "write", {"path": "a.txt", "content": "x"}))
OTHER_WAY = {
    "session/set_mode": {"modeId": "full-auto"},
    "session/set_config_option": {"configId": "mode", "value": "full-auto"},
}


def told(mode: PermissionMode) -> list[dict[str, Any]]:
    return [
        {"sessionUpdate": "current_mode_update", "currentModeId": mode},
        {"sessionUpdate": "config_option_update", "configOptions": config_options(mode, ONE_MODEL)},
    ]


def options(mode: PermissionMode) -> tuple[Any, Any]:
    return modes(mode), config_options(mode, ONE_MODEL)


def mode_updates(editor: MemoryEditor) -> list[dict[str, Any]]:
    return [
        u for u in editor.updates() if u["sessionUpdate"] in ("current_mode_update", "config_option_update")
    ]


@pytest.mark.parametrize("mode", get_args(PermissionMode))
def test_what_can_be_chosen_is_said_in_both_forms(mode: PermissionMode) -> None:
    """ACP, session modes and config options: the same modes, the same current one, every option a default."""
    state = schema.SessionModeState.model_validate(modes(mode))
    option, model = config_options(mode, ONE_MODEL)
    schema.SetSessionConfigOptionResponse.model_validate({"configOptions": [option, model]})

    assert [each.id for each in state.available_modes] == [each["value"] for each in option["options"]]
    assert [each.id for each in state.available_modes] == list(get_args(PermissionMode))
    assert (state.current_mode_id, option["currentValue"], option["category"]) == (mode, mode, "mode")


async def test_a_session_opens_with_the_mode_of_the_settings(tmp_path: Path) -> None:
    """ACP, session setup: `modes` and `configOptions` of the answer."""
    async with connected(tmp_path, MemoryModel(), flags={"permission_mode": "plan"}) as editor:
        opened = await editor.result(editor.send("session/new", cwd=editor.cwd, mcpServers=[]))

        schema.NewSessionResponse.model_validate(opened)
        assert (opened["modes"], opened["configOptions"]) == options("plan")


@pytest.mark.parametrize("method", OTHER_WAY)
async def test_each_way_tells_of_the_other_before_its_answer(method: str, tmp_path: Path) -> None:
    """ACP, session config options: modes and the option are kept in sync, whoever changes them."""
    async with connected(tmp_path, MemoryModel(WRITE, says("Done."))) as editor:
        session = await editor.new_session()

        changed = editor.send(method, sessionId=session, **OTHER_WAY[method])
        result = await editor.result(changed)

        complete = {"configOptions": config_options("full-auto", ONE_MODEL)}
        assert result == (complete if "configId" in OTHER_WAY[method] else {})
        assert mode_updates(editor) == told("full-auto")
        updated = editor.place_of(lambda frame: frame.get("method") == "session/update")
        assert updated < editor.place_of(lambda frame: frame.get("id") == changed)
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}
        assert (Path(editor.cwd) / "a.txt").read_text() == "x"
        assert editor.questions() == []


async def test_a_mode_that_holds_already_is_no_news(tmp_path: Path) -> None:
    """Our promise: an answer, and no update that says nothing new."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()

        assert await editor.result(editor.send("session/set_mode", sessionId=session, modeId="ask")) == {}

        assert mode_updates(editor) == []


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("session/set_mode", {"modeId": "yolo"}, "modeId"),
        ("session/set_mode", {"modeId": 1}, "modeId"),
        ("session/set_mode", {}, "modeId"),
        ("session/set_config_option", {"configId": "nope", "value": "plan"}, "configId"),
        ("session/set_config_option", {"configId": "mode", "value": "yolo"}, "value"),
        ("session/set_config_option", {"configId": "mode", "type": "boolean", "value": True}, "value"),
    ],
)
async def test_what_cannot_be_chosen_is_refused_by_name(
    method: str, params: dict[str, Any], path: str, tmp_path: Path
) -> None:
    """ACP, session modes; session config options: -32602, and nothing changed."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()

        error = await editor.error(editor.send(method, sessionId=session, **params))

        assert (error["code"], error["data"]) == (-32602, {"path": path})
        assert editor.harness.permission.mode(session) == "ask"
        assert mode_updates(editor) == []


@pytest.mark.parametrize("method", OTHER_WAY)
async def test_a_mode_of_no_session_is_refused(method: str, tmp_path: Path) -> None:
    """ACP, errors: -32002 for a session that is not active."""
    async with connected(tmp_path, MemoryModel()) as editor:
        error = await editor.error(editor.send(method, sessionId="nope", **OTHER_WAY[method]))

        assert (error["code"], error["data"]) == (-32002, {"sessionId": "nope"})


async def test_a_loaded_session_has_the_mode_its_person_chose(tmp_path: Path) -> None:
    """Contract 1: `session/mode` is stored with the session; the next session starts as the settings say."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()
        await editor.result(editor.send("session/set_mode", sessionId=session, modeId="plan"))

    async with connected(tmp_path, MemoryModel()) as editor:
        loaded = await editor.result(editor.load(session))

        assert (loaded["modes"], loaded["configOptions"]) == options("plan")
        assert mode_updates(editor) == [{"sessionUpdate": "current_mode_update", "currentModeId": "plan"}]
        assert editor.harness.permission.mode(await editor.new_session()) == "ask"


async def test_a_project_chooses_no_mode(tmp_path: Path) -> None:
    """Contract 11: a cloned repository must not choose full-auto."""
    project = tmp_path / "project"
    for name in ("config.toml", ".acp-server/config.toml", ".config/acp-server/config.toml"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text('format = 1\n[agent]\npermission_mode = "full-auto"\n')

    async with connected(tmp_path, MemoryModel(WRITE, says("Done."))) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        editor.answer(await editor.asked(), "reject_once")
        await editor.result(prompt)

        assert editor.harness.permission.mode(session) == "ask"
        assert not (project / "a.txt").exists()
