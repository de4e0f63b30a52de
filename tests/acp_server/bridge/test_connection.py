"""Sessions of one connection: made, found, and ended with it."""

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_server.bridge.connection import Connection
from tests.doubles.memory_editor import connected
from tests.doubles.memory_model import HANG, MemoryModel, calls


async def test_the_first_line_that_names_a_session_is_its_answer(tmp_path: Path) -> None:
    """zed#60199: an update before the session/new response was dropped by the editor."""
    async with connected(tmp_path, MemoryModel()) as editor:
        news = [editor.send("session/new", cwd=editor.cwd) for _ in range(10)]
        ids = [(await editor.result(new))["sessionId"] for new in news]
        await editor.result(editor.prompt(ids[0]))

        assert len(set(ids)) == 10
        for new, session in zip(news, ids, strict=True):
            first = editor.place_of(lambda frame, session=session: session in str(frame))  # type: ignore[misc]
            assert editor.transcript[first].request_id == new


async def test_a_directory_that_is_none_is_refused_with_its_path(tmp_path: Path) -> None:
    """Contracts 5: a missing cwd is -32602 with `data.path`."""
    async with connected(tmp_path, MemoryModel()) as editor:
        error = await editor.error(editor.send("session/new", cwd=str(tmp_path / "nowhere")))

        assert (error["code"], error["data"]) == (-32602, {"path": "cwd"})
        assert "nowhere" in error["message"]
        assert editor.harness.agents.list() == ()


async def test_a_cancelled_session_new_is_answered_so_and_makes_nothing(tmp_path: Path) -> None:
    """ACP, cancellation: `$/cancel_request` of anything but a prompt answers -32800."""
    async with connected(tmp_path, MemoryModel()) as editor:
        new = editor.send("session/new", cwd=editor.cwd)

        editor.cancel_request(new)

        assert await editor.error(new) == {"code": -32800, "message": "Request cancelled"}
        assert editor.harness.agents.list() == ()


async def test_an_unforeseen_error_is_told_in_our_words_only(tmp_path: Path) -> None:
    """Contracts 5: no library's text and no str of an unknown exception on the wire."""
    async with connected(tmp_path, MemoryModel()) as editor:

        async def explode(*_: object, **__: object) -> Any:
            raise RuntimeError("secret detail")

        editor.harness.create_session = explode  # type: ignore[method-assign]
        error = await editor.error(editor.send("session/new", cwd=editor.cwd))

        assert error["code"] == -32603
        assert "secret" not in str(error)


async def test_a_stray_cancellation_inside_a_request_is_its_failure_and_ends_nothing_else(
    tmp_path: Path,
) -> None:
    """Contracts 6: a future somebody else cancelled must not end the group of handlers."""
    async with connected(tmp_path, MemoryModel()) as editor:
        make = editor.harness.create_session

        async def stray(*_: object, **__: object) -> Any:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            future.cancel()
            await future

        editor.harness.create_session = stray  # type: ignore[method-assign]
        assert (await editor.error(editor.send("session/new", cwd=editor.cwd)))["code"] == -32603

        editor.harness.create_session = make  # type: ignore[method-assign]
        await editor.new_session()


async def test_closing_ends_every_session_and_answers_what_is_open(tmp_path: Path) -> None:
    """Seed, dispose.spec: disconnect mid-prompt; agents are gone when close returns, prompts cancelled."""
    write = calls(("c1", "write", {"path": "a.txt", "content": "x"}))
    async with connected(tmp_path, MemoryModel(write, [HANG])) as editor:
        asking, hanging = await editor.new_session(), await editor.new_session()
        prompts = [editor.prompt(asking)]
        await editor.asked()
        prompts.append(editor.prompt(hanging))

        await editor.connection.close()
        await editor.connection.close()

        assert [await editor.result(prompt) for prompt in prompts] == [{"stopReason": "cancelled"}] * 2
        assert editor.harness.agents.list() == ()
        assert not (Path(editor.cwd) / "a.txt").exists()


async def test_a_session_asked_for_at_the_end_is_not_left_behind(tmp_path: Path) -> None:
    """Seed, dispose.spec: disconnect, then session/new: no agent appears."""
    async with connected(tmp_path, MemoryModel()) as editor:
        stored = await editor.new_session()
    async with connected(tmp_path, MemoryModel()) as editor:
        asked = [editor.send("session/new", cwd=editor.cwd), editor.load(stored)]

        await editor.connection.close()

        assert [(await editor.error(request))["data"] for request in asked] == [{"kind": "closed"}] * 2
        assert editor.harness.agents.list() == ()


async def test_work_that_is_cut_off_with_the_server_is_answered_cancelled(tmp_path: Path) -> None:
    """ACP, cancellation: internal cancellation looks the same as the editor's, -32800."""
    async with connected(tmp_path, MemoryModel()) as editor, anyio.create_task_group() as handlers:
        connection = Connection(editor.harness, editor.peer, editor, handlers)
        answers: list[Any] = []

        async def work(_: object) -> None:
            await anyio.sleep_forever()

        connection.spawn(work).attach(lambda _, error: answers.append(error and error.code))
        await anyio.lowlevel.checkpoint()
        handlers.cancel_scope.cancel()
        await anyio.lowlevel.cancel_shielded_checkpoint()

    assert answers == [-32800]


async def test_a_slow_reader_makes_the_stream_wait_and_a_cancel_is_still_heard(tmp_path: Path) -> None:
    """Contracts 7, agent/pace: a slow editor pauses the stream, never the cancel nor the reader."""
    model = MemoryModel([*({"text": "x"} for _ in range(1000)), HANG])
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        editor.has_room = False
        prompt = editor.prompt(session)
        await editor.until(editor.texts, "the first words")

        editor.cancel(session)

        assert await editor.result(prompt) == {"stopReason": "cancelled"}
        assert len(editor.texts()) <= 64


@pytest.mark.parametrize("ask", [True, False])
async def test_warm_up_runs_once_whatever_opens_a_session(
    ask: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contracts 8: the provider loads behind the first session/new answer, in the background."""
    loads: list[str] = []
    model = MemoryModel()

    async def load() -> None:
        loads.append("load")
        model.bell.ring()

    monkeypatch.setattr(model, "load", load)
    async with connected(tmp_path, model) as editor:
        session = await editor.new_session()
        if ask:
            await editor.result(editor.load(session))
        await editor.until(lambda: loads, "the provider's load")
        await editor.new_session()

    assert loads == ["load"]
