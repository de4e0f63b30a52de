"""Incoming bytes from everything an editor, a shell or a test may have put in place of stdin."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from acp_server.transport.inbox import BLOCK_BYTES, read_blocks

WAIT_S = 5.0
MANY = os.urandom(3 * BLOCK_BYTES)


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.close(fd)


def _pipe(_: Path) -> tuple[int, int]:
    return os.pipe()


def _socket(_: Path) -> tuple[int, int]:
    one, other = socket.socketpair()
    return one.detach(), other.detach()


def _fifo(folder: Path) -> tuple[int, int]:
    os.mkfifo(folder / "fifo")
    reading = os.open(folder / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(folder / "fifo", os.O_WRONLY)
    os.set_blocking(reading, True)
    return reading, writing


class Heard:
    """Blocks as they came, and the end."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self.ends = 0
        self._ended = anyio.Event()

    def end(self) -> None:
        self.ends += 1
        self._ended.set()

    async def all(self) -> bytes:
        with anyio.fail_after(WAIT_S):
            await self._ended.wait()
        return b"".join(self.blocks)


@pytest.mark.parametrize("make", [_pipe, _socket, _fifo])
async def test_what_can_be_polled_is_read_to_its_end(
    make: Callable[[Path], tuple[int, int]], tmp_path: Path
) -> None:
    """Contracts 13: a pipe Protocol for FIFO and socket."""
    reading, writing = make(tmp_path)
    heard = Heard()

    await read_blocks(reading, heard.blocks.append, heard.end)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, _write_all, writing, MANY)
        data = await heard.all()

    assert data == MANY
    assert heard.ends == 1


async def test_a_regular_file_is_read_to_its_end(tmp_path: Path) -> None:
    """Contracts 13: Protocols refuse files; a daemon thread reads them."""
    (tmp_path / "in").write_bytes(MANY)
    heard = Heard()

    await read_blocks(os.open(tmp_path / "in", os.O_RDONLY), heard.blocks.append, heard.end)

    assert await heard.all() == MANY
    assert heard.ends == 1


async def test_the_null_device_is_at_its_end_at_once() -> None:
    """Contracts 13: a Protocol would wait for ever on the null device."""
    heard = Heard()

    await read_blocks(os.open(os.devnull, os.O_RDONLY), heard.blocks.append, heard.end)

    assert await heard.all() == b""


async def test_a_file_that_cannot_be_read_is_at_its_end(tmp_path: Path) -> None:
    """Our promise: an input that fails is an editor that is gone."""
    heard = Heard()

    await read_blocks(os.open(tmp_path / "in", os.O_WRONLY | os.O_CREAT), heard.blocks.append, heard.end)

    assert await heard.all() == b""


async def test_callbacks_of_the_thread_may_use_anyio(tmp_path: Path) -> None:
    """Contracts 13: an explicit context, else anyio knows no event loop in them."""
    (tmp_path / "in").write_bytes(b"x")
    heard, made = Heard(), list[anyio.Event]()

    await read_blocks(os.open(tmp_path / "in", os.O_RDONLY), lambda _: made.append(anyio.Event()), heard.end)
    await heard.all()

    made[0].set()
    assert made[0].is_set()
