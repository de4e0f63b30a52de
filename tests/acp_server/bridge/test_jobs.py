"""Background jobs and the life of a session: who stops, ends them; who goes on, learns how they ended."""

import os
from pathlib import Path

import anyio
from anyio import to_thread

from agent_loop import text_of
from tests.doubles.memory_editor import connected
from tests.doubles.memory_model import HANG, WAIT_S, MemoryModel, calls, says

FREE = {"permission_mode": "full-auto"}


def job(line: str) -> list[dict[str, object]]:
    return calls(("c1", "run_command", {"command": line, "background": True}))


def process_of(mark: str) -> int | None:
    """The process whose command line holds the mark."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in line:
            return int(folder.name)
    return None


async def gone(mark: str) -> bool:
    """Wait for that process to end."""
    pid = process_of(mark)
    if pid is not None:
        process = os.pidfd_open(pid)
        with anyio.move_on_after(WAIT_S):
            await anyio.wait_readable(process)
        os.close(process)
    return process_of(mark) is None


async def test_stop_ends_what_the_stopped_turn_left_running(tmp_path: Path) -> None:
    """Our promise: Stop is trusted, also by what was started in the background a moment ago."""
    mark = f"600.{os.getpid()}4"
    model = MemoryModel(job(f"exec sleep {mark}"), [HANG])
    async with connected(tmp_path, model, flags=FREE) as editor:
        session = await editor.new_session()
        prompt = editor.prompt(session)
        await editor.until(lambda: model.hanging, "the second step")
        assert process_of(mark)

        editor.cancel(session)

        assert await editor.result(prompt) == {"stopReason": "cancelled"}
        assert await gone(mark)


async def test_a_job_goes_on_with_the_session_and_ends_with_it(tmp_path: Path) -> None:
    """Issue "Acting with consent": owner and life time; a later Stop is not about it."""
    mark = f"600.{os.getpid()}5"
    model = MemoryModel(job(f"exec sleep {mark}"), says("It runs."), [HANG])
    async with connected(tmp_path, model, flags=FREE) as editor:
        session = await editor.new_session()
        await editor.result(editor.prompt(session))
        later = editor.prompt(session)
        await editor.until(lambda: model.hanging, "the later turn")
        editor.cancel(session)
        await editor.result(later)
        assert process_of(mark)

        await editor.result(editor.send("session/close", sessionId=session))

        assert await gone(mark)


async def test_jobs_end_with_the_server(tmp_path: Path) -> None:
    """Contracts 13: nobody outlives us."""
    mark = f"600.{os.getpid()}6"
    async with connected(
        tmp_path, MemoryModel(job(f"exec sleep {mark}"), says("It runs.")), flags=FREE
    ) as editor:
        await editor.result(editor.prompt(await editor.new_session()))
        assert process_of(mark)

    assert not process_of(mark)


async def test_the_model_learns_that_a_job_ended(tmp_path: Path) -> None:
    """Spec loop 1.11: a note for its next step, which wakes nobody."""
    (tmp_path / "project").mkdir()
    os.mkfifo(tmp_path / "project" / "go")
    model = MemoryModel(job("cat go; exit 3"), says("It runs."), says("I see."))
    async with connected(tmp_path, model, flags=FREE) as editor:
        session = await editor.new_session()
        await editor.result(editor.prompt(session))
        log = editor.connection.record(session).handle.agent.session.log

        log.observe(lambda _: editor.bell.ring())
        await to_thread.run_sync((tmp_path / "project" / "go").write_text, "x")
        await editor.until(lambda: "ended with exit code" in str(list(log)), "the note")
        assert len(model.requests) == 2
        await editor.result(editor.prompt(session, "And now?"))

        said = [text_of(message.content) for message in model.requests[2].messages]
        assert any(
            "[job-1 ended with exit code: 3. job_output tells what it printed.]" in text for text in said
        )
