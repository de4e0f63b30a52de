"""Incoming bytes: a pipe protocol where the descriptor can be polled, a daemon thread where it cannot.

`connect_read_pipe` refuses a regular file and hangs for ever on the null device; a thread of anyio's
pool would keep the process alive until stdin closes.
"""

import asyncio
import os
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Final

BLOCK_BYTES: Final = 256 * 1024


async def read_blocks(fd: int, on_block: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
    """Start handing over what arrives on `fd`, on the loop; returns at once.

    `on_end` is called once, at end of file or when reading fails.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        loop = asyncio.get_running_loop()
        pipe = os.fdopen(fd, "rb", buffering=0)
        await loop.connect_read_pipe(lambda: _Pipe(on_block, on_end), pipe)
    else:
        _read_in_thread(fd, on_block, on_end)


class _Pipe(asyncio.Protocol):
    def __init__(self, on_block: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        self._on_block = on_block
        self._on_end = on_end

    def data_received(self, data: bytes) -> None:
        self._on_block(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._on_end()


def _read_in_thread(fd: int, on_block: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    # A thread's callbacks would run in an empty context, in which anyio does not know its event loop.
    context = copy_context()

    def run() -> None:
        with suppress(RuntimeError):  # the loop is closed: the process is going
            while block := _read(fd):
                loop.call_soon_threadsafe(on_block, block, context=context)
            loop.call_soon_threadsafe(on_end, context=context)

    threading.Thread(target=run, name="stdin", daemon=True).start()


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, BLOCK_BYTES)
    except OSError:
        return b""
