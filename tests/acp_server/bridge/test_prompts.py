"""Prompts: one turn and one answer each, in order; what is shown in between and what it is answered."""

import os
from pathlib import Path

import pytest

from acp_server.bridge.record import WAITING_LIMIT
from agent_loop import ErrorKind, Queued, StatusChanged, Text, ToolOutput, Warned
from agent_loop.errors import ERROR_KINDS, FAILURE_WORDS
from tests.doubles.memory_editor import connected
from tests.doubles.memory_model import STOP, Item, MemoryModel, calls, says


async def test_all_of_a_turn_is_shown_before_its_answer_and_nothing_of_it_after(tmp_path: Path) -> None:
    """ACP, prompt turn: updates go out before the response."""
    async with connected(tmp_path, MemoryModel(says("Hel", "lo"))) as editor:
        session = await editor.new_session()

        prompt = editor.prompt(session)
        await editor.result(prompt)

        assert editor.texts() == ["Hel", "lo"]
        assert editor.transcript[-1].request_id == prompt


@pytest.mark.parametrize(
    ("answer", "stopped"),
    [
        ([{"text": "x"}, STOP], "end_turn"),
        ([{"text": "x"}, {"finish": "max_tokens"}], "max_tokens"),
        ([{"text": "x"}, {"finish": "refusal"}], "refusal"),
    ],
)
async def test_the_stop_reason_is_the_turns(answer: list[Item], stopped: str, tmp_path: Path) -> None:
    """ACP, prompt turn (stop reasons)."""
    async with connected(tmp_path, MemoryModel(answer)) as editor:
        session = await editor.new_session()

        assert await editor.result(editor.prompt(session)) == {"stopReason": stopped}


async def test_a_failed_model_call_is_an_error_with_the_kind_and_the_next_prompt_runs(tmp_path: Path) -> None:
    """Contracts 5: -32603 in plain words, `data.kind` one of the closed list."""
    failure = {"kind": "quota", "message": "Nothing left.", "status": 429, "retryAfter": 2}
    async with connected(tmp_path, MemoryModel([{"raise": failure}])) as editor:
        session = await editor.new_session()

        error = await editor.error(editor.prompt(session))

        assert (error["code"], error["message"]) == (-32603, "Nothing left.")
        assert error["data"]["kind"] == "quota"
        assert error["data"]["retryAfter"] == 2
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}


@pytest.mark.parametrize("kind", sorted(ERROR_KINDS))
async def test_each_kind_of_failure_reads_well_and_the_next_prompt_runs(
    kind: ErrorKind, tmp_path: Path
) -> None:
    """Contracts 5, bug reports opencode#42827 and claude-agent-acp#161: no empty success, no bare error."""
    failure = {"kind": kind, "status": 418, "retryAfter": 90}
    async with connected(tmp_path, MemoryModel([{"raise": failure}])) as editor:
        session = await editor.new_session()

        error = await editor.error(editor.prompt(session))

        assert error["code"] == -32603
        assert error["message"].startswith(f"scripted {FAILURE_WORDS[kind]}")
        assert error["data"] == {"kind": kind, "provider": "scripted", "status": 418, "retryAfter": 90}
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}


async def test_a_cancel_ends_the_wait_for_another_try(tmp_path: Path) -> None:
    """Issue, retry: cancellable while waiting; ACP, cancellation: the prompt gets its answer."""
    busy = {"raise": {"kind": "rate_limit", "message": "Slow down.", "retryAfter": 50}}
    async with connected(tmp_path, MemoryModel([{"text": "Hal"}, busy])) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        why = "Slow down. Trying again in 50 s. What the model said of this answer so far does not count."
        await editor.update(messageId="t1.s1.a1.retry", content={"type": "text", "text": why})

        editor.cancel(session)

        assert await editor.result(prompt) == {"stopReason": "cancelled"}
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}


async def test_a_turn_that_fails_from_inside_tells_nothing_of_our_insides(tmp_path: Path) -> None:
    """Contracts 5: no `str` of an unknown exception on the wire; the log has it."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()

        def explode(_: object) -> None:
            raise RuntimeError("secret detail")

        undo = editor.harness.agents.list()[0].session.log.observe(explode)
        error = await editor.error(editor.prompt(session))
        undo()

        assert (error["code"], error["data"]) == (-32603, {"kind": "unknown"})
        assert "secret" not in str(error)
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}


async def test_prompts_written_at_once_run_one_by_one_in_order(tmp_path: Path) -> None:
    """fx#993: five prompts at once, each gets exactly one answer, and the model sees them in order."""
    model = MemoryModel()
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()

        prompts = [editor.prompt(session, f"prompt {n}") for n in range(5)]
        results = [await editor.result(prompt) for prompt in prompts]

        assert results == [{"stopReason": "end_turn"}] * 5
        assert model.prompts == [f"prompt {n}" for n in range(5)]
        answered = [x.request_id for x in editor.transcript if x.sender == "agent" and x.is_response]
        assert answered[-5:] == prompts


async def test_too_many_waiting_prompts_are_refused_and_the_others_run(tmp_path: Path) -> None:
    """Contracts 4: the FIFO holds 32, then -32600."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()

        prompts = [editor.prompt(session) for _ in range(WAITING_LIMIT + 2)]

        error = await editor.error(prompts[-1])
        assert (error["code"], error["data"]) == (-32600, {"kind": "busy"})
        assert [await editor.result(p) for p in prompts[:-1]] == [{"stopReason": "end_turn"}] * len(
            prompts[:-1]
        )


async def test_a_turn_that_no_prompt_of_ours_began_is_not_shown(tmp_path: Path) -> None:
    """Seed, bridge.spec: an autonomous turn gives no updates and settles nobody."""
    async with connected(tmp_path, MemoryModel(says("own thoughts"), says("answer"))) as editor:
        session = await editor.new_session()
        [agent] = editor.harness.agents.list()

        agent.send(())
        await agent.when_idle()
        editor.harness.bus.emit(ToolOutput(session, 1, 1, "c1", "loud", False))
        editor.harness.bus.emit(ToolOutput("nobody", 1, 1, "c1", "loud", False))
        prompt = editor.prompt(session)
        await editor.result(prompt)

        assert [update["content"]["text"] for update in editor.updates()] == ["answer"]


async def test_context_put_in_behind_a_queued_prompt_does_not_settle_it(tmp_path: Path) -> None:
    """Seed, turns.spec: a plugin injects right after the prompt is queued; the real answer arrives."""
    async with connected(tmp_path, MemoryModel(says("answer"))) as editor:
        session = await editor.new_session()
        [agent] = editor.harness.agents.list()

        prompt = editor.prompt(session)
        agent.inject((Text("The sun shines."),), {"kind": "weather"})

        assert await editor.result(prompt) == {"stopReason": "end_turn"}
        assert editor.texts() == ["answer"]


async def test_a_turn_that_a_plugin_aborts_is_answered_end_turn(tmp_path: Path) -> None:
    """copilot-cli#4561: `cancelled` is only for what the client cancelled."""
    async with connected(tmp_path, MemoryModel([{"text": "x"}, {"hang": True}])) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        await editor.until(editor.texts, "the first words")

        editor.harness.agents.list()[0].abort()

        assert await editor.result(prompt) == {"stopReason": "end_turn"}


async def test_a_prompt_that_a_plugin_drops_before_its_turn_is_answered(tmp_path: Path) -> None:
    """Seed, turns.spec: a prompt removed before its turn is answered cancelled, and nothing hangs."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()
        [agent] = editor.harness.agents.list()
        undo = editor.harness.bus.on(Queued, lambda _: agent.cancel())
        assert await editor.result(editor.prompt(session)) == {"stopReason": "cancelled"}
        undo()

        prompt = editor.prompt(session)
        agent.cancel()

        assert await editor.result(prompt) == {"stopReason": "cancelled"}
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}


async def test_a_prompt_lost_before_its_turn_is_an_error_and_the_next_one_runs(tmp_path: Path) -> None:
    """Our promise: whatever goes wrong inside, every prompt gets exactly one answer."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()
        [agent] = editor.harness.agents.list()
        undo = editor.harness.bus.on(StatusChanged, lambda _: agent.inbox.take_queued(), prepend=True)

        prompt, waiting = editor.prompt(session), editor.prompt(session)
        error = await editor.error(prompt)
        undo()

        assert (error["code"], "lost" in error["message"]) == (-32603, True)
        await editor.answered(waiting)
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}


async def test_a_waiting_prompt_that_cannot_be_sent_is_answered(tmp_path: Path) -> None:
    """Our promise: a raising `send` frees the slot and leaves nobody without an answer."""
    model = MemoryModel([{"hold": "go"}, STOP])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        [agent] = editor.harness.agents.list()
        first, second = editor.prompt(session), editor.prompt(session)
        await editor.until(lambda: model.holds("go"), "the first turn")

        def refuse(*_: object) -> str:
            raise ValueError("no")

        agent.send = refuse  # type: ignore[assignment, method-assign]
        model.release("go")

        await editor.answered(first)
        assert await editor.result(second) == {"stopReason": "cancelled"}
        assert (await editor.error(editor.prompt(session)))["code"] == -32603
        del agent.send
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}


async def test_news_reaches_the_person_once_with_the_next_result(tmp_path: Path) -> None:
    """Contracts 3: warnings travel in `_meta` of the session's next result."""
    async with connected(tmp_path, MemoryModel()) as editor:
        session = await editor.new_session()
        other = await editor.new_session()

        editor.harness.bus.emit(Warned(session, "The disk is full."))
        editor.harness.bus.emit(Warned("somebody else", "Nothing of ours."))

        assert await editor.result(editor.prompt(other)) == {"stopReason": "end_turn"}
        told = {"stopReason": "end_turn", "_meta": {"agent_loop": {"warnings": ["The disk is full."]}}}
        assert await editor.result(editor.prompt(session)) == told
        assert await editor.result(editor.prompt(session)) == {"stopReason": "end_turn"}


async def test_a_turn_that_cannot_be_saved_is_answered_and_says_so(tmp_path: Path) -> None:
    """Contracts 8: a failed flush is one warning; the session goes on in memory."""
    model = MemoryModel([{"hold": "go"}, {"text": "x"}, STOP])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        await editor.until(lambda: model.holds("go"), "the model to be held")
        [log] = (tmp_path / "state" / "sessions").glob("*/*.jsonl")
        log.unlink()

        model.release("go")
        result = await editor.result(prompt)

        assert result["stopReason"] == "end_turn"
        [warning] = result["_meta"]["agent_loop"]["warnings"]
        assert "could not be saved" in warning


async def test_two_sessions_run_at_once_and_each_update_names_its_own(tmp_path: Path) -> None:
    """codecompanion.nvim#3367: ids mixed up between sessions of one connection."""
    model = MemoryModel([{"text": "one"}, {"hold": "go"}, STOP], says("two"))
    async with connected(tmp_path, model) as editor:
        first, second = await editor.new_session(), await editor.new_session()
        slow = editor.prompt(first)
        await editor.until(lambda: model.holds("go"), "the first session's turn")

        await editor.result(editor.prompt(second))
        model.release("go")
        await editor.result(slow)

        assert (editor.texts(first), editor.texts(second)) == (["one"], ["two"])


async def test_one_huge_delta_is_shown_whole_in_pieces(tmp_path: Path) -> None:
    """opencode PR17016: single updates above 64 KiB crashed clients; message text is never cut."""
    text = "é" * 40_000
    async with connected(tmp_path, MemoryModel(says(text))) as editor:
        session = await editor.new_session()

        await editor.result(editor.prompt(session))

        assert "".join(editor.texts()) == text
        assert max(len(part.encode()) for part in editor.texts()) <= 32 * 1024


async def test_live_output_of_a_command_is_shown_on_its_open_card(tmp_path: Path) -> None:
    """ACP, tool calls: an update's content replaces what the card showed."""
    loud = "echo begun; read line < go; echo done"
    model = MemoryModel(calls(("c1", "run_command", {"command": loud})))
    async with connected(tmp_path, model, flags={"permission_mode": "full-auto"}) as editor:
        session = await editor.new_session()
        fifo = Path(editor.cwd) / "go"
        os.mkfifo(fifo)
        prompt = editor.prompt(session)
        live = "```console\nbegun\n```"
        content = [{"type": "content", "content": {"type": "text", "text": live}}]
        await editor.update(sessionUpdate="tool_call_update", toolCallId="c1", content=content)

        fifo.write_text("\n")
        await editor.result(prompt)

        done = await editor.update(toolCallId="c1", status="completed")
        assert done["content"][0]["content"]["text"] == "```console\nbegun\ndone\n```"
