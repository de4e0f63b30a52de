"""Which model answers a session, and how long it thinks: chosen in an editor, kept with the session."""

from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from acp import schema

from agent_loop import Image
from tests.doubles.memory_editor import MemoryEditor, connected
from tests.doubles.memory_model import MemoryModel, calls, says
from tests.doubles.picture import PICTURE

SETTINGS = """format = 1
[providers.scripted]
kind = "scripted"
script = "unused"
[models."scripted/test"]
context_window = 1000
[models."scripted/deep"]
context_window = 2000
reasoning = true
images = true
"""

DEEP = {
    "session/set_model": {"modelId": "scripted/deep"},
    "session/set_config_option": {"configId": "model", "value": "scripted/deep"},
}

SHOWN = {"type": "image", "data": b64encode(PICTURE).decode(), "mimeType": "image/png"}


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    (tmp_path / "state").mkdir()
    file = tmp_path / "state" / "config.toml"
    file.write_text(SETTINGS)
    return file


pytestmark = pytest.mark.usefixtures("settings")


def values(options: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The current value of each option."""
    return {option["id"]: option["currentValue"] for option in options}


def news(editor: MemoryEditor) -> list[dict[str, str]]:
    """What each `config_option_update` said is current."""
    return [
        values(update["configOptions"])
        for update in editor.updates()
        if update["sessionUpdate"] == "config_option_update"
    ]


async def choose(editor: MemoryEditor, session: str, option: str, value: str) -> dict[str, str]:
    """The current values after a choice."""
    request = editor.send("session/set_config_option", sessionId=session, configId=option, value=value)
    return values((await editor.result(request))["configOptions"])


async def test_a_session_opens_with_the_models_there_are(tmp_path: Path) -> None:
    """ACP, session config options: category `model`; those of the settings, for nothing else is known yet."""
    async with connected(tmp_path, MemoryModel()) as editor:
        opened = await editor.result(editor.send("session/new", cwd=editor.cwd, mcpServers=[]))

        schema.NewSessionResponse.model_validate(opened)
        _, model = opened["configOptions"]
        assert (model["id"], model["category"], model["currentValue"]) == ("model", "model", "scripted/test")
        assert model["options"] == [
            {"value": "scripted/test", "name": "test"},
            {"value": "scripted/deep", "name": "deep"},
        ]


async def test_models_of_several_places_are_named_with_theirs(settings: Path, tmp_path: Path) -> None:
    """Our promise: two places may have a model of the same name."""
    settings.write_text(f'{SETTINGS}[models."demo/tour"]\n')
    async with connected(tmp_path, MemoryModel()) as editor:
        opened = await editor.result(editor.send("session/new", cwd=editor.cwd, mcpServers=[]))

        _, model = opened["configOptions"]
        assert [each["name"] for each in model["options"]] == ["scripted/test", "scripted/deep", "demo/tour"]


@pytest.mark.parametrize("method", DEEP)
async def test_the_model_that_is_chosen_answers_the_next_prompt(method: str, tmp_path: Path) -> None:
    """ACP, session config options: told before the answer; `session/set_model` is the same in older words."""
    model = MemoryModel()
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()

        result = await editor.result(editor.send(method, sessionId=session, **DEEP[method]))
        await editor.result(editor.prompt(session))

        current = {"mode": "ask", "model": "scripted/deep", "thought_level": "default"}
        assert values(result["configOptions"]) == current if "configId" in DEEP[method] else result == {}
        assert news(editor) == [current]
        told = editor.place_of(lambda frame: "config_option_update" in str(frame))
        assert told < editor.place_of(lambda frame: frame.get("id") == 3)
        assert [request.model for request in model.requests] == ["deep"]
        assert model.requests[0].info.context_window == 2000


async def test_a_model_that_answers_already_is_no_news(tmp_path: Path) -> None:
    """Our promise: an answer, and no update that says nothing new."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()

        await editor.result(editor.send("session/set_model", sessionId=session, modelId="scripted/test"))
        await editor.result(
            editor.send(
                "session/set_config_option", sessionId=session, configId="model", value="scripted/deep"
            )
        )
        assert await choose(editor, session, "thought_level", "default")

        assert len(news(editor)) == 1


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        ("session/set_model", {"modelId": "scripted/none"}, "modelId"),
        ("session/set_model", {"modelId": 1}, "modelId"),
        ("session/set_model", {}, "modelId"),
        ("session/set_config_option", {"configId": "model", "value": "nowhere/at-all"}, "value"),
        ("session/set_config_option", {"configId": "thought_level", "value": "high"}, "value"),
    ],
)
async def test_what_cannot_be_chosen_is_refused_by_name(
    method: str, params: dict[str, Any], path: str, tmp_path: Path
) -> None:
    """ACP, session config options: -32602, and nothing changed; no thought of a model that has none."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()

        error = await editor.error(editor.send(method, sessionId=session, **params))

        assert (error["code"], error["data"]) == (-32602, {"path": path})
        assert news(editor) == []


async def test_another_model_takes_over_at_the_next_step(tmp_path: Path) -> None:
    """Issue "Real models": a switch mid-turn; the call that runs is not disturbed."""
    look = calls(("c1", "read", {"path": "a.txt"}))
    model = MemoryModel([{"text": "Wait."}, {"hold": "go"}, *look], says("Done."))
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        await editor.until(lambda: model.holds("go"), "the first step")

        await choose(editor, session, "model", "scripted/deep")
        model.release("go")

        assert (await editor.result(prompt))["stopReason"] == "end_turn"
        assert [request.model for request in model.requests] == ["test", "deep"]


async def test_how_long_it_thinks_is_chosen_for_a_model_that_thinks(tmp_path: Path) -> None:
    """ACP, session config options: category `thought_level`; it goes with the model it was chosen for."""
    model = MemoryModel()
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        await choose(editor, session, "model", "scripted/deep")

        for level in ("high", "default", "low"):
            assert (await choose(editor, session, "thought_level", level))["thought_level"] == level
            await editor.result(editor.prompt(session))
        assert "thought_level" not in await choose(editor, session, "model", "scripted/test")
        await editor.result(editor.prompt(session))

        assert [request.thought for request in model.requests] == ["high", None, "low", None]


async def test_a_loaded_session_is_answered_by_the_model_that_was_chosen(tmp_path: Path) -> None:
    """Contract 1: `session/model` is stored with the session; a new session starts as the settings say."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()
        await choose(editor, session, "model", "scripted/deep")
        await choose(editor, session, "thought_level", "low")

    model = MemoryModel()
    async with connected(tmp_path, model) as editor:
        loaded = await editor.result(editor.load(session))
        await editor.result(editor.prompt(session))

        assert values(loaded["configOptions"]) == {
            "mode": "ask",
            "model": "scripted/deep",
            "thought_level": "low",
        }
        assert [(request.model, request.thought) for request in model.requests] == [("deep", "low")]
        fresh = await editor.result(editor.send("session/new", cwd=editor.cwd, mcpServers=[]))
        assert values(fresh["configOptions"])["model"] == "scripted/test"


async def test_a_fork_goes_on_with_the_model_that_was_chosen(tmp_path: Path) -> None:
    """Our promise: a fork is the same conversation, seen by the same model."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()
        await choose(editor, session, "model", "scripted/deep")
        await editor.result(editor.prompt(session))

        forked = await editor.result(
            editor.send("session/fork", sessionId=session, cwd=editor.cwd, mcpServers=[])
        )

        assert values(forked["configOptions"])["model"] == "scripted/deep"


async def test_a_chosen_model_that_is_gone_is_told_and_the_session_goes_on(
    settings: Path, tmp_path: Path
) -> None:
    """Our promise: a thread opens whatever became of a provider, and its person knows who answers."""
    settings.write_text(f'{SETTINGS}[providers.old]\nkind = "demo"\n[models."old/tour"]\n')
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()
        await choose(editor, session, "model", "old/tour")
    settings.write_text(SETTINGS)

    async with connected(tmp_path, MemoryModel()) as editor:
        loaded = await editor.result(editor.load(session))

        [warning] = loaded["_meta"]["agent_loop"]["warnings"]
        assert warning.startswith("This session's model old/tour is not there, scripted/test answers: ")
        assert values(loaded["configOptions"])["model"] == "scripted/test"


async def test_what_the_provider_lists_can_be_chosen_once_it_has_said_so(tmp_path: Path) -> None:
    """Issue "Real models": live listing in the background; sessions that are open learn of it."""
    async with connected(tmp_path, Listing(), flags={"permission_mode": "plan"}) as editor:
        session = await editor.new_session()
        editor.harness.warm_up()
        await editor.until(lambda: news(editor), "the list of models")

        assert "scripted/new-one" in [each["value"] for each in model_choices(editor)]
        assert "scripted/text-embedding-3" not in [each["value"] for each in model_choices(editor)]
        assert (await choose(editor, session, "model", "scripted/new-one"))["model"] == "scripted/new-one"


class Listing(MemoryModel):
    """A provider that says which models it has."""

    async def models(self) -> tuple[str, ...]:
        return ("new-one", "text-embedding-3")


def model_choices(editor: MemoryEditor) -> list[dict[str, str]]:
    updates = [u for u in editor.updates() if u["sessionUpdate"] == "config_option_update"]
    [choices] = [option["options"] for option in updates[-1]["configOptions"] if option["id"] == "model"]
    return list(choices)


async def test_a_picture_reaches_a_model_that_sees_and_is_there_on_load(tmp_path: Path) -> None:
    """Scenario B76: never dropped silently on the way."""
    model = MemoryModel()
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        refused = await editor.error(editor.send("session/prompt", sessionId=session, prompt=[SHOWN]))
        await choose(editor, session, "model", "scripted/deep")
        await editor.result(editor.send("session/prompt", sessionId=session, prompt=[SHOWN]))

        assert refused["data"] == {"path": "prompt[0].type"}
        assert model.requests[0].messages[-1].content == (Image(SHOWN["data"], SHOWN["mimeType"]),)

    async with connected(tmp_path, MemoryModel()) as editor:
        await editor.result(editor.load(session))

        [shown] = [u["content"] for u in editor.updates() if u["sessionUpdate"] == "user_message_chunk"]
        assert shown == SHOWN


async def test_the_only_model_is_shown_and_may_be_set_again(settings: Path, tmp_path: Path) -> None:
    """Scenario B91: what a server was started with is current. B90: setting just that again is fine."""
    settings.unlink()
    async with connected(tmp_path, MemoryModel()) as editor:
        opened = await editor.result(editor.send("session/new", cwd=editor.cwd, mcpServers=[]))

        [_, model] = opened["configOptions"]
        assert (model["currentValue"], model["options"]) == (
            "scripted/test",
            [{"value": "scripted/test", "name": "test"}],
        )
        again = editor.send("session/set_model", sessionId=opened["sessionId"], modelId="scripted/test")
        assert await editor.result(again) == {}
