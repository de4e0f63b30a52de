"""`_agent_loop/steer`: text for the running turn; three outcomes, and one of them for every request."""

from pathlib import Path

from agent_loop import Queued
from tests.doubles.memory_editor import connected
from tests.doubles.memory_model import HANG, STOP, MemoryModel, calls, says

READ = calls(("c1", "list", {}))


async def test_a_steer_joins_the_running_turn_and_says_which_message_it_became(tmp_path: Path) -> None:
    """Our extension: `steered` when the text is logged in the running turn."""
    model = MemoryModel([{"hold": "go"}, *READ])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        await editor.until(lambda: model.holds("go"), "the hold")

        steer = editor.steer(session, "be brief")
        model.release("go")
        result = await editor.result(steer)

        log = editor.harness.agents.list()[0].session.log
        [logged] = [fact for fact in log if fact.TYPE == "steering/message"]
        assert result == {"outcome": "steered", "messageId": getattr(logged, "id", "")}
        assert await editor.result(prompt) == {"stopReason": "end_turn"}
        assert "be brief" in model.prompts[-1]


async def test_an_idle_steer_is_a_prompt(tmp_path: Path) -> None:
    """alas PR1166: steering while idle must not be queued for ever."""
    async with connected(tmp_path, MemoryModel(says("ok"))) as editor:
        session = await editor.new_session()

        result = await editor.result(editor.steer(session, "hello"))

        assert result == {"outcome": "prompted", "stopReason": "end_turn"}
        assert editor.texts() == ["ok"]


async def test_a_steer_behind_a_prompt_in_one_write_joins_its_turn(tmp_path: Path) -> None:
    """Our promise: the order of the lines is the order of the conversation."""
    model = MemoryModel()
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()

        prompt, steer = editor.prompt(session, "one"), editor.steer(session, "two")

        assert (await editor.result(steer))["outcome"] == "steered"
        assert await editor.result(prompt) == {"stopReason": "end_turn"}
        assert len(model.requests) == 1


async def test_steering_a_cancelled_turn_becomes_turns_own_and_loses_nothing(tmp_path: Path) -> None:
    """hermes-agent PR18258: steers and prompts right behind a stop all get their turn, in order."""
    model = MemoryModel([{"text": "x"}, HANG])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        editor.prompt(session, "one")
        await editor.until(editor.texts, "the first words")

        editor.cancel(session)
        steers = [editor.steer(session, "two"), editor.steer(session, "three")]
        prompt = editor.prompt(session, "four")

        told = {"outcome": "prompted", "stopReason": "end_turn"}
        assert [await editor.result(steer) for steer in steers] == [told, told]
        assert await editor.result(prompt) == {"stopReason": "end_turn"}
        assert model.prompts == ["one", "three", "four"]


async def test_a_cancel_answers_every_open_steer(tmp_path: Path) -> None:
    """Contracts 4: `{outcome: "cancelled"}`."""
    model = MemoryModel([{"text": "x"}, HANG])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        prompt = editor.steer(session, "one")
        await editor.until(editor.texts, "the first words")
        steer = editor.steer(session, "two")

        editor.cancel(session)

        assert await editor.result(prompt) == {"outcome": "cancelled"}
        assert await editor.result(steer) == {"outcome": "cancelled"}
        await editor.result(editor.prompt(session, "three"))
        assert model.prompts == ["one", "three"]


async def test_a_turn_of_steers_can_be_cancelled_by_any_of_their_requests(tmp_path: Path) -> None:
    """Contracts 4: `$/cancel_request` of whatever runs stops its turn."""
    model = MemoryModel([{"text": "x"}, HANG], [{"text": "y"}, HANG])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        editor.prompt(session, "one")
        await editor.until(editor.texts, "the first words")
        editor.cancel(session)
        steers = [editor.steer(session, "two"), editor.steer(session, "three")]
        await editor.until(lambda: "y" in editor.texts(), "the turn of the steers")

        editor.cancel_request(steers[1])

        assert [await editor.result(steer) for steer in steers] == [{"outcome": "cancelled"}] * 2
        await editor.until(lambda: not model.running, "the end of the model call")


async def test_a_steer_that_a_plugin_drops_is_answered(tmp_path: Path) -> None:
    """Our promise: every steer gets exactly one answer, whatever a listener does."""
    model = MemoryModel([{"hold": "go"}, {"text": "x"}, STOP])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        await editor.until(lambda: model.holds("go"), "the hold")
        [agent] = editor.harness.agents.list()

        undo = editor.harness.bus.on(Queued, lambda _: agent.cancel())
        steer = editor.steer(session, "more")
        undo()

        assert await editor.result(steer) == {"outcome": "cancelled"}
        assert await editor.result(prompt) == {"stopReason": "end_turn"}
