"""Stopping: what a cancel reaches, what is answered, in which order, and what may not come afterwards."""

from pathlib import Path

import pytest

from agent_loop import StatusChanged
from tests.doubles.memory_editor import MemoryEditor, connected
from tests.doubles.memory_model import HANG, STOP, Item, MemoryModel, calls, says
from tests.doubles.transcript import Line

WRITE = calls(("c1", "write", {"path": "a.txt", "content": "x"}))
CANCELLED = {"stopReason": "cancelled"}
PAIRS = 200


def said_by_agent(editor: MemoryEditor) -> list[Line]:
    return [line for line in editor.transcript if line.sender == "agent"]


async def test_a_cancel_answers_in_the_same_breath(tmp_path: Path) -> None:
    """ACP, cancellation: the prompt is answered cancelled; ours is answered before the next line is read."""
    async with connected(tmp_path, MemoryModel([{"text": "x"}, HANG])) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        await editor.until(editor.texts, "the first words")

        editor.cancel(session)

        assert editor.answered_yet(prompt)
        assert await editor.result(prompt) == CANCELLED


async def test_a_cancel_stops_the_model_call(tmp_path: Path) -> None:
    """opencode#30146: the cancel did nothing and the model went on."""
    model = MemoryModel([{"text": "x"}, HANG])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        editor.prompt(session)
        await editor.until(lambda: model.running, "the model call")

        editor.cancel(session)

        await editor.until(lambda: not model.running, "the end of the model call")


async def test_nothing_of_a_cancelled_turn_follows_its_answer(tmp_path: Path) -> None:
    """ACP, cancellation: updates may come after the cancel, but only before the prompt's answer."""
    model = MemoryModel([{"text": "seen"}, {"hold": "go"}, {"text": "unseen"}, STOP])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        editor.prompt(session)
        await editor.until(lambda: model.holds("go"), "the hold")

        model.release("go")
        editor.cancel(session)
        await editor.result(editor.prompt(session))

        assert editor.texts() == ["seen", "Done."]


async def test_open_cards_fail_before_the_prompt_is_answered(tmp_path: Path) -> None:
    """Standing check: every call reaches completed or failed before its turn is answered."""
    async with connected(tmp_path, MemoryModel(WRITE)) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        question = await editor.asked()

        editor.cancel(session)

        last = said_by_agent(editor)[-2:]
        assert last[0].update["toolCallId"] == "c1"
        assert last[0].update["status"] == "failed"
        assert last[1].request_id == prompt
        withdrawn = {"requestId": question["id"]}
        await editor.until(
            lambda: any(
                said.method == "$/cancel_request" and said.frame["params"] == withdrawn  # type: ignore[index]
                for said in said_by_agent(editor)
            ),
            "our own cancel",
        )


async def test_an_answer_after_the_cancel_allows_nothing(tmp_path: Path) -> None:
    """deepchat#1881: the late answer to a cancelled question is taken quietly, and nothing is written."""
    async with connected(tmp_path, MemoryModel(WRITE, says("next"))) as editor:
        session = await editor.new_session()
        editor.prompt(session)
        question = await editor.asked()

        editor.cancel(session)
        editor.answer(question, "allow_once")
        await editor.result(editor.prompt(session))

        assert not (Path(editor.cwd) / "a.txt").exists()


async def test_no_question_is_asked_after_a_cancel(tmp_path: Path) -> None:
    """letta-acp PR21: the permission prompt appeared after the person had pressed stop."""
    model = MemoryModel([{"hold": "go"}, *WRITE], says("next"))
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        editor.prompt(session)
        await editor.until(lambda: model.holds("go"), "the hold")

        model.release("go")
        editor.cancel(session)
        await editor.result(editor.prompt(session))

        assert editor.questions() == []
        assert [u for u in editor.updates() if u["sessionUpdate"].startswith("tool")] == []


async def test_a_cancel_takes_the_waiting_prompts_along_in_order(tmp_path: Path) -> None:
    """hermes-agent#55183: prompts that waited started by themselves after the stop."""
    model = MemoryModel([{"text": "x"}, HANG])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        prompts = [editor.prompt(session) for _ in range(3)]
        await editor.until(editor.texts, "the first words")

        editor.cancel(session)

        assert [line.request_id for line in said_by_agent(editor)[-3:]] == prompts
        assert [await editor.result(prompt) for prompt in prompts] == [CANCELLED] * 3
        await editor.result(editor.prompt(session, "next"))
        assert model.prompts == ["Hello.", "next"]


async def test_a_cancel_of_one_session_leaves_the_other(tmp_path: Path) -> None:
    """Seed, multi-session.spec: cancel A, B answers."""
    model = MemoryModel([HANG], [{"hold": "go"}, {"text": "b"}, STOP])
    async with connected(tmp_path, model) as editor:
        one, other = await editor.new_session(), await editor.new_session()
        first = editor.prompt(one)
        await editor.until(lambda: model.running, "the first call")
        second = editor.prompt(other)
        await editor.until(lambda: model.holds("go"), "the second call")

        editor.cancel(one)
        model.release("go")

        assert await editor.result(first) == CANCELLED
        assert await editor.result(second) == {"stopReason": "end_turn"}


async def test_an_idle_cancel_spoils_nothing(tmp_path: Path) -> None:
    """hermes-agent PR94597: a cancel while idle poisoned the next prompt."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()

        editor.cancel(session)
        editor.cancel("nobody")
        editor.cancel(session)

        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}


async def test_a_cancel_before_the_turn_began_stops_it(tmp_path: Path) -> None:
    """ACP, cancellation: a cancel that arrives before the model call must still work."""
    model = MemoryModel()
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()

        prompt = editor.prompt(session)
        editor.cancel(session)

        assert await editor.result(prompt) == CANCELLED
        assert await editor.result(editor.prompt(session, "next")) == {"stopReason": "end_turn"}
        assert model.prompts == ["next"]


@pytest.mark.parametrize("when", ["running", "idle"])
async def test_two_hundred_cancel_and_prompt_pairs_in_one_write(when: str, tmp_path: Path) -> None:
    """hermes-agent PR94597: editors stop and send in one go; each prompt but the last is cancelled."""
    model = MemoryModel([{"text": "x"}, HANG])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        running = [editor.prompt(session, "0")] if when == "running" else []
        if running:
            await editor.until(editor.texts, "the first words")

        prompts = list(running)
        for number in range(1, PAIRS + 1):
            editor.cancel(session)
            prompts.append(editor.prompt(session, str(number)))
        if not running:
            await editor.until(editor.texts, "the words of the last prompt")
            editor.cancel(session)
        await editor.answered(prompts[-1])

        answered = [line.request_id for line in said_by_agent(editor) if line.request_id in prompts]
        assert answered == prompts
        assert [await editor.result(prompt) for prompt in prompts[:-1]] == [CANCELLED] * (len(prompts) - 1)
        assert model.prompts == (["0", str(PAIRS)] if running else [str(PAIRS)])


async def test_two_hundred_prompt_and_cancel_pairs_in_one_write_are_all_cancelled(tmp_path: Path) -> None:
    """Our promise: a cancel can neither overtake its prompt nor be lost before the first step."""
    model = MemoryModel()
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()

        prompts = []
        for _ in range(PAIRS):
            prompts.append(editor.prompt(session))
            editor.cancel(session)

        assert [await editor.result(prompt) for prompt in prompts] == [CANCELLED] * PAIRS
        assert [line.request_id for line in said_by_agent(editor)[-PAIRS:]] == prompts
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}
        assert len(model.requests) == 1


async def test_a_cancelled_request_stops_its_own_turn_only(tmp_path: Path) -> None:
    """Contracts 4: `$/cancel_request` of the running prompt; those that wait go on."""
    model = MemoryModel([{"text": "x"}, HANG])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        running, waiting = editor.prompt(session, "one"), editor.prompt(session, "two")
        await editor.until(editor.texts, "the first words")

        editor.cancel_request(running)

        assert await editor.result(running) == CANCELLED
        assert await editor.result(waiting) == {"stopReason": "end_turn"}
        assert model.prompts == ["one", "two"]


async def test_a_cancelled_request_before_its_turn_or_while_it_waits_never_runs(tmp_path: Path) -> None:
    """Contracts 4: of a waiting prompt it removes it; both answer cancelled."""
    model = MemoryModel()
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        prompts = [editor.prompt(session, text) for text in ("one", "two", "three")]

        editor.cancel_request(prompts[1])
        editor.cancel_request(prompts[0])
        editor.cancel_request(prompts[0])
        editor.cancel_request(999)

        assert [await editor.result(p) for p in prompts] == [CANCELLED, CANCELLED, {"stopReason": "end_turn"}]
        assert model.prompts == ["three"]


async def test_what_was_cancelled_stays_in_the_conversation(tmp_path: Path) -> None:
    """Gold-Band#130: after the cancel the accepted message vanished from the model's context."""
    model = MemoryModel([{"text": "I will"}, HANG])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        editor.prompt(session, "remember 42")
        await editor.until(editor.texts, "the first words")
        editor.cancel(session)

        await editor.result(editor.prompt(session, "what was it?"))

        seen = str(model.requests[1].messages)
        assert seen.count("remember 42") == 1
        assert "I will" in seen


async def test_a_disposed_agent_answers_everything_cancelled(tmp_path: Path) -> None:
    """Seed, dispose.spec: disposal during a turn answers its prompt cancelled, and what waits."""
    async with connected(tmp_path, MemoryModel([{"text": "x"}, HANG])) as editor:
        session = await editor.new_session()
        prompts = [editor.prompt(session), editor.prompt(session)]
        await editor.until(editor.texts, "the first words")
        steer = editor.steer(session, "more")

        editor.harness.agents.list()[0].begin_disposal()

        assert [await editor.result(prompt) for prompt in prompts] == [CANCELLED] * 2
        assert await editor.result(steer) == {"outcome": "cancelled"}
        assert (await editor.error(editor.prompt(session)))["data"] == {"kind": "closed"}


async def test_a_raising_listener_cannot_change_an_answer(tmp_path: Path) -> None:
    """ACP, cancellation: cancelled is answered even if aborting raised exceptions anywhere."""
    script: list[Item] = [{"text": "x"}, HANG]
    async with connected(tmp_path, MemoryModel(script)) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        await editor.until(editor.texts, "the first words")

        def explode(_: object) -> None:
            raise RuntimeError("secret detail")

        editor.harness.bus.on(StatusChanged, explode, prepend=True)
        editor.harness.agents.list()[0].session.log.observe(explode, prepend=True)
        editor.cancel(session)

        assert await editor.result(prompt) == CANCELLED
        assert "secret detail" not in str([line.frame for line in said_by_agent(editor)])
