"""`session/load`: what is replayed, what waits meanwhile, and what a load leaves behind."""

from pathlib import Path
from typing import Any

from tests.doubles.memory_editor import OPENED, MemoryEditor, connected
from tests.doubles.memory_model import CALLS, STOP, Item, MemoryModel, says
from tests.goldens.replay import live_updates, replay_faults

LONG: list[Item] = [*({"text": "a"} if n % 2 else {"think": "b"} for n in range(140)), STOP]
"""An answer whose replay takes more updates than are sent without a pause."""


def replayed(editor: MemoryEditor, load: int) -> list[dict[str, Any]]:
    """The updates between a load and its answer."""
    asked = [line.request_id == load and line.sender == "editor" for line in editor.transcript].index(True)
    end = editor.place_of(lambda frame: frame.get("id") == load and "method" not in frame)
    return [line.update for line in editor.transcript[asked:end] if line.update]


def answers(editor: MemoryEditor) -> list[object]:
    """The ids answered, in order."""
    return [line.request_id for line in editor.transcript if line.sender == "agent" and line.is_response]


async def fill_the_pipe(editor: MemoryEditor, session: str) -> int:
    """Begin a load whose replay stops half-way, because the editor stops reading; its id."""
    editor.has_room = False
    before = len(editor.updates(session))
    load = editor.load(session)
    await editor.until(lambda: len(editor.updates(session)) >= before + 64, "the first part of the replay")
    return load


def let_it_flow(editor: MemoryEditor) -> None:
    editor.has_room = True
    editor.bell.ring()


async def test_a_live_session_is_replayed_as_it_was_shown_with_the_persons_words(tmp_path: Path) -> None:
    """ACP, loading sessions: the entire conversation, user chunks too, before the answer."""
    look: list[Item] = [{"think": "Hm."}, {"text": "Look"}, {"text": "ing."}]
    model = MemoryModel([*look, {"tool": "list", "id": "c1", "args": {}}, CALLS], says("All ", "done."))
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        await editor.result(editor.prompt(session, "What is here?"))
        shown = len(editor.transcript)

        load = editor.load(session)
        result = await editor.result(load)

        assert result == OPENED
        seen = replayed(editor, load)
        assert seen[0]["sessionUpdate"] == "user_message_chunk"
        assert seen[0]["content"] == {"type": "text", "text": "What is here?"}
        assert list(replay_faults(live_updates(editor.transcript[:shown], session), seen)) == []
        assert len(editor.harness.agents.list()) == 1


async def test_what_a_session_used_is_told_again_and_its_turn_on_the_answer_only(tmp_path: Path) -> None:
    """Issue, usage: after each call, live = replay; a turn's sum on its prompt's result under `_meta`."""
    (tmp_path / "state").mkdir()
    settings = '[models."scripted/test"]\ncontext_window = 1000\ninput_price = 1.0\noutput_price = 2.0\n'
    (tmp_path / "state" / "config.toml").write_text(f"format = 1\n{settings}")
    used: Item = {"usage": {"in": 100, "out": 10}}
    model = MemoryModel([{"tool": "list", "id": "c1", "args": {}}, used, CALLS], [{"text": "x"}, used, STOP])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        answer = await editor.result(editor.prompt(session))
        live = [update for update in editor.updates() if update["sessionUpdate"] == "usage_update"]

        load = editor.load(session)
        result = await editor.result(load)

        assert [update["cost"]["amount"] for update in live] == [0.00012, 0.00024]
        again = [update for update in replayed(editor, load) if update["sessionUpdate"] == "usage_update"]
        assert again == live
        turn = {"inputTokens": 200, "outputTokens": 20, "totalTokens": 220}
        assert (answer["_meta"], "_meta" in result) == ({"agent_loop": {"usage": turn}}, False)


async def test_a_running_session_cannot_be_loaded_and_goes_on(tmp_path: Path) -> None:
    """Our promise (contracts 4): loading a session that has work to do is refused as busy."""
    model = MemoryModel([{"hold": "go"}, {"text": "x"}, STOP])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        await editor.until(lambda: model.holds("go"), "the model to be held")

        error = await editor.error(editor.load(session))

        assert (error["code"], error["data"]) == (-32600, {"kind": "busy", "sessionId": session})
        model.release("go")
        assert await editor.result(prompt) == {"stopReason": "end_turn"}


async def test_of_two_loads_in_one_write_one_is_busy(tmp_path: Path) -> None:
    """Seed, load.spec: two pipelined loads of one id, exactly one wins."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()

        first, second = editor.load(session), editor.load(session)

        assert (await editor.error(second))["data"]["kind"] == "busy"
        assert await editor.result(first) == OPENED


async def test_a_prompt_written_behind_a_load_waits_for_the_end_of_the_replay(tmp_path: Path) -> None:
    """ACP, loading sessions: the answer follows the last entry, and live updates are none of them."""
    async with connected(tmp_path, MemoryModel(LONG, says("new"))) as editor:
        session = await editor.new_session()
        await editor.result(editor.prompt(session))
        editor.has_room = False

        load, prompt = editor.load(session), editor.prompt(session, "And now?")

        [agent] = editor.harness.agents.list()
        assert agent.inbox.queued == 0
        let_it_flow(editor)
        await editor.result(prompt)
        assert answers(editor)[-2:] == [load, prompt]
        assert not [u for u in replayed(editor, load) if str(u.get("messageId")).startswith("t2.")]


async def test_steers_during_a_load_become_prompts_before_the_waiting_ones(tmp_path: Path) -> None:
    """Contracts 4: a steer without a turn takes the slot like a prompt, before the FIFO."""
    model = MemoryModel(LONG)
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        await editor.result(editor.prompt(session))
        load = await fill_the_pipe(editor, session)

        prompt = editor.prompt(session, "prompt")
        steers = [editor.steer(session, "one"), editor.steer(session, "two")]
        let_it_flow(editor)
        await editor.result(prompt)

        assert answers(editor)[-4:] == [load, *steers, prompt]
        assert model.prompts[1:] == ["one", "two", "prompt"]
        assert await editor.result(steers[0]) == {"outcome": "prompted", "stopReason": "end_turn"}


async def test_a_cancel_during_a_load_cancels_what_waits_and_not_the_load(tmp_path: Path) -> None:
    """ACP, cancellation: prompts are answered cancelled; a load is no prompt."""
    async with connected(tmp_path, MemoryModel(LONG)) as editor:
        session = await editor.new_session()
        await editor.result(editor.prompt(session))
        load = await fill_the_pipe(editor, session)
        prompt, steer = editor.prompt(session), editor.steer(session, "more")

        editor.cancel(session)

        assert await editor.result(prompt) == {"stopReason": "cancelled"}
        assert await editor.result(steer) == {"outcome": "cancelled"}
        let_it_flow(editor)
        assert await editor.result(load) == OPENED


async def test_what_waits_for_a_load_runs_when_the_load_is_cancelled(tmp_path: Path) -> None:
    """Our promise: every prompt gets its answer; `$/cancel_request` of a load answers -32800."""
    async with connected(tmp_path, MemoryModel(LONG, says("new"))) as editor:
        session = await editor.new_session()
        await editor.result(editor.prompt(session))
        load = await fill_the_pipe(editor, session)
        prompt = editor.prompt(session)

        editor.cancel_request(load)

        assert (await editor.error(load))["code"] == -32800
        let_it_flow(editor)
        assert await editor.result(prompt) == {"stopReason": "end_turn"}


async def test_a_cancelled_load_of_a_stored_session_leaves_nothing_live(tmp_path: Path) -> None:
    """Our promise: a load that failed can be tried again, and nothing of the first try is left."""
    async with connected(tmp_path, MemoryModel(LONG)) as editor:
        session = await editor.new_session()
        await editor.result(editor.prompt(session))
    async with connected(tmp_path, MemoryModel()) as editor:
        load = await fill_the_pipe(editor, session)

        editor.cancel_request(load)

        assert (await editor.error(load))["code"] == -32800
        assert editor.harness.agents.list() == ()
        assert (await editor.error(editor.prompt(session)))["code"] == -32002
        let_it_flow(editor)
        assert await editor.result(editor.load(session)) == OPENED


async def test_a_stored_session_is_loaded_and_goes_on_with_the_next_turn(tmp_path: Path) -> None:
    """ACP, loading sessions: afterwards the session can be prompted, and the model remembers."""
    async with connected(tmp_path, MemoryModel(says("first answer"))) as editor:
        session = await editor.new_session()
        await editor.result(editor.prompt(session, "first"))
    model = MemoryModel(says("second answer"))
    async with connected(tmp_path, model) as editor:
        await editor.result(editor.load(session))

        await editor.result(editor.prompt(session, "second"))

        said = [
            it.get("messageId") for it in editor.updates() if it["sessionUpdate"] == "agent_message_chunk"
        ]
        assert said == ["t1.s1.a1.message", "t2.s1.a1.message"]
        assert len(model.requests[0].messages) == 3


async def test_a_stored_session_is_loaded_from_another_spelling_of_its_directory_only(tmp_path: Path) -> None:
    """Contracts 5: a mismatching cwd is -32602 naming it; the real path decides what matches."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()
    async with connected(tmp_path, MemoryModel()) as editor:
        (tmp_path / "other").mkdir()

        elsewhere = editor.send("session/load", sessionId=session, cwd=str(tmp_path / "other"))
        error = await editor.error(elsewhere)
        assert (error["code"], error["data"]) == (-32602, {"path": "cwd"})
        assert editor.harness.agents.list() == ()

        same = editor.send("session/load", sessionId=session, cwd=f"{editor.cwd}/.")
        assert await editor.result(same) == OPENED

        live_elsewhere = editor.send("session/load", sessionId=session, cwd=str(tmp_path / "other"))
        assert (await editor.error(live_elsewhere))["data"] == {"path": "cwd"}
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}
