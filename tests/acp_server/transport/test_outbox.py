"""The outbox: one write per tick, in order, never blocking the loop, and room for whoever can wait."""

import contextlib
import os
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from acp_server.transport.outbox import HIGH_WATER_BYTES, LOW_WATER_BYTES, Outbox

WAIT_S = 5.0
LINE = b"x" * 1023 + b"\n"


class Pipe:
    """A pipe with an outbox at its writing end."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        os.set_blocking(self.reading, False)
        self.broken: list[str] = []
        self.outbox = Outbox(self.writing, on_broken=lambda: self.broken.append("broken"))

    def read(self, size: int = 1 << 20) -> bytes:
        """What is in the pipe right now."""
        try:
            return os.read(self.reading, size)
        except BlockingIOError:
            return b""

    async def read_until(self, done: Callable[[bytes], bool]) -> bytes:
        """Read on until enough has come."""
        data = b""
        with anyio.fail_after(WAIT_S):
            while not done(data):
                data += self.read()
                await anyio.lowlevel.checkpoint()
        return data


@pytest.fixture
async def pipe() -> AsyncIterator[Pipe]:
    made = Pipe()
    yield made
    made.outbox.close()
    for fd in (made.reading, made.writing):
        os.close(fd)


def _close(outbox: Outbox) -> None:
    """Close it and wait for its thread, which could write to whoever gets the descriptor next."""
    outbox.close()
    for thread in threading.enumerate():
        if thread.name == "outbox":
            thread.join(WAIT_S)


async def _tick() -> None:
    await anyio.lowlevel.checkpoint()


async def test_all_lines_of_a_tick_leave_in_one_write_and_in_order(pipe: Pipe) -> None:
    """Our promise: one write per tick, so a client wakes once for all of it."""
    for number in range(100):
        pipe.outbox.write(b"%d\n" % number)
    assert pipe.read() == b""

    await _tick()

    assert pipe.read() == b"".join(b"%d\n" % number for number in range(100))
    assert pipe.outbox.writes == 1
    assert pipe.outbox.backlog_bytes == 0


async def test_a_full_pipe_blocks_nobody_and_loses_nothing(pipe: Pipe) -> None:
    """Contracts 13: a nonblocking write; what does not fit waits for the reader."""
    lines = [b"%d " % number + LINE for number in range(500)]
    for line in lines[:400]:
        pipe.outbox.write(line)
    await _tick()
    assert pipe.outbox.backlog_bytes > HIGH_WATER_BYTES
    for line in lines[400:]:
        pipe.outbox.write(line)

    wanted = b"".join(lines)
    data = await pipe.read_until(lambda data: len(data) >= len(wanted))

    assert data == wanted
    assert await pipe.outbox.drain(WAIT_S)
    assert pipe.outbox.backlog_bytes == 0


async def test_a_pipe_that_somebody_else_filled_is_waited_for(pipe: Pipe) -> None:
    """Contracts 13: EAGAIN is no error; whoever shares the pipe may have filled it."""
    filled = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            filled += os.write(pipe.writing, b"x")

    pipe.outbox.write(LINE)
    await _tick()
    assert (pipe.outbox.writes, pipe.outbox.backlog_bytes) == (0, len(LINE))

    data = await pipe.read_until(lambda data: len(data) >= filled + len(LINE))
    assert data[filled:] == LINE


async def test_room_is_given_at_once_below_the_mark_and_only_after_the_low_one_above_it(pipe: Pipe) -> None:
    """Contracts 13: high water 64 KiB; a slow editor pauses the stream."""
    await pipe.outbox.room()
    for _ in range(1000):
        pipe.outbox.write(LINE)
    passed: list[int] = []

    async def wait() -> None:
        await pipe.outbox.room()
        passed.append(pipe.outbox.backlog_bytes)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        tasks.start_soon(wait)
        while pipe.outbox.backlog_bytes > HIGH_WATER_BYTES + 1024:
            pipe.read(1024)
            await _tick()
            assert passed == []
        await pipe.read_until(lambda _: len(passed) == 2)

    assert max(passed) <= LOW_WATER_BYTES
    for _ in range(1000):
        pipe.outbox.write(LINE)
    with anyio.move_on_after(0) as scope:
        await pipe.outbox.room()
    assert scope.cancelled_caught


async def test_draining_waits_for_a_reader_and_no_longer_than_it_may(pipe: Pipe) -> None:
    """Contracts 13: the last answer is not lost on a full pipe, nor waited for without end."""
    assert await pipe.outbox.drain(0)
    for _ in range(200):
        pipe.outbox.write(LINE)

    assert not await pipe.outbox.drain(0.01)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pipe.read_until, lambda data: len(data) == 200 * len(LINE))
        assert await pipe.outbox.drain(WAIT_S)


@pytest.mark.parametrize("queued", [1, 500])
async def test_a_reader_that_is_gone_is_told_of_once_and_nobody_waits_for_it(queued: int, pipe: Pipe) -> None:
    """Contracts 13: EPIPE ends the connection; it is no crash and no hang."""
    for _ in range(queued):
        pipe.outbox.write(LINE)
    await _tick()
    os.close(pipe.reading)
    pipe.reading = os.open(os.devnull, os.O_RDONLY)

    pipe.outbox.write(LINE)
    with anyio.fail_after(WAIT_S):
        while not pipe.broken:
            await _tick()
    pipe.outbox.write(LINE)
    await _tick()

    assert pipe.broken == ["broken"]
    assert pipe.outbox.backlog_bytes == 0
    await pipe.outbox.room()
    assert await pipe.outbox.drain(0)


@pytest.mark.parametrize("blocking", [True, False])
async def test_the_descriptors_mode_is_given_back(blocking: bool) -> None:
    """Contracts 13: restored descriptor flags; the terminal's shell may share them."""
    reading, writing = os.pipe()
    os.set_blocking(writing, blocking)
    outbox = Outbox(writing, on_broken=lambda: None)
    assert not os.get_blocking(writing)
    for _ in range(500):
        outbox.write(LINE)
    await _tick()

    outbox.close()

    assert os.get_blocking(writing) == blocking
    os.close(reading)
    os.close(writing)


async def test_a_socket_is_written_like_a_pipe() -> None:
    """Our promise: some editors give a socket pair instead of pipes."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        outbox = Outbox(ours.fileno(), on_broken=lambda: None)

        outbox.write(b"hello\n")
        await outbox.drain(WAIT_S)

        assert theirs.recv(100) == b"hello\n"
        outbox.close()


async def test_a_file_is_written_by_a_thread_in_order(tmp_path: Path) -> None:
    """Contracts 13: a descriptor that cannot be polled must not block the loop."""
    fd = os.open(tmp_path / "out", os.O_CREAT | os.O_WRONLY)
    outbox = Outbox(fd, on_broken=lambda: None)
    for number in range(50):
        outbox.write(b"%d\n" % number)
        await _tick()

    assert await outbox.drain(WAIT_S)
    _close(outbox)

    assert (tmp_path / "out").read_bytes() == b"".join(b"%d\n" % number for number in range(50))
    assert os.get_blocking(fd)
    os.close(fd)


async def test_a_file_that_cannot_be_written_breaks_once_and_nobody_waits() -> None:
    """Our promise: a full disk behind stdout ends the connection like a reader that is gone."""
    fd = os.open("/dev/full", os.O_WRONLY)
    broken: list[str] = []
    gone = anyio.Event()

    def on_broken() -> None:
        broken.append("broken")
        gone.set()

    outbox = Outbox(fd, on_broken=on_broken)
    for line in (b"one\n", b"two\n"):
        outbox.write(line)
        outbox._flush()
    with anyio.fail_after(WAIT_S):
        await gone.wait()
    await outbox.drain(WAIT_S)
    _close(outbox)

    assert broken == ["broken"]
    os.close(fd)


async def test_a_write_that_fails_after_the_last_of_the_loop_is_nobodys_trouble() -> None:
    """Our promise: a thread that outlives the loop ends quietly."""
    with tempfile.TemporaryFile() as file:
        outbox = Outbox(file.fileno(), on_broken=lambda: None)
        outbox._loop = _ClosedLoop()  # type: ignore[assignment]
        outbox._to_thread.put(b"late\n")
        _close(outbox)

        file.seek(0)
        assert file.read() == b"late\n"


class _ClosedLoop:
    def call_soon_threadsafe(self, *_: object, **__: object) -> None:
        raise RuntimeError("Event loop is closed")
