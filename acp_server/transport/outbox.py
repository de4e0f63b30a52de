"""Outgoing lines: one queue, joined once per loop tick into one write, and a place to wait for room.

Rules.
1. Nothing blocks the loop: a descriptor that can be polled is written without blocking; for any
   other (a file, a terminal) a thread writes.
2. Lines are never dropped or reordered; only writes are joined.
3. Whoever can wait (the stream's pace) waits for room above the high-water mark; answers never do.
"""

import asyncio
import logging
import os
import queue
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Final

import anyio
import anyio.lowlevel

log = logging.getLogger(__name__)

HIGH_WATER_BYTES: Final = 64 * 1024
LOW_WATER_BYTES: Final = HIGH_WATER_BYTES // 4


class Outbox:
    """The writing half of stdio.

    Attributes:
        writes: How many writes were made, for tests and benchmarks.
    """

    def __init__(self, fd: int, *, on_broken: Callable[[], None]) -> None:
        """Write to `fd`; `on_broken` is told once when nobody reads it any more."""
        self._fd = fd
        self._on_broken = on_broken
        self._loop = asyncio.get_running_loop()
        self._lines: list[bytes] = []
        # A view: a slow reader takes 64 KiB at a time, and cutting bytes would copy all the rest each time.
        self._rest = memoryview(b"")
        self._backlog = 0
        self._scheduled = False
        self._writing = False
        self._broken = False
        self._room = anyio.Event()
        self._empty = anyio.Event()
        self._empty.set()
        mode = os.fstat(fd).st_mode
        self._pollable = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        self._was_blocking = True
        self.writes = 0
        if self._pollable:
            # Nonblocking mode belongs to the open description, which others may share: restored at the end.
            self._was_blocking = os.get_blocking(fd)
            os.set_blocking(fd, False)
        else:
            self._to_thread: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
            self._context = copy_context()
            threading.Thread(target=self._write_blocking, name="outbox", daemon=True).start()

    @property
    def backlog_bytes(self) -> int:
        """Bytes queued and not yet taken by the descriptor."""
        return self._backlog

    def write(self, line: bytes) -> None:
        """Queue one line; it leaves with everything else of this tick."""
        if self._broken:
            return
        if not self._backlog:
            self._empty = anyio.Event()
        self._lines.append(line)
        self._backlog += len(line)
        if not self._scheduled and not self._writing:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    async def room(self) -> None:
        """Let others run; above the high-water mark, wait until the reader has caught up."""
        if self._backlog <= HIGH_WATER_BYTES:
            await anyio.lowlevel.checkpoint()
            return
        if self._room.is_set():
            self._room = anyio.Event()
        await self._room.wait()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until all is written; false when it was not within `timeout_s`."""
        with anyio.move_on_after(timeout_s):
            await self._empty.wait()
        return self._empty.is_set()

    def close(self) -> None:
        """Give the descriptor back as it was; what is still queued is lost."""
        if self._pollable:
            if self._writing:
                self._loop.remove_writer(self._fd)
            with suppress(OSError):
                os.set_blocking(self._fd, self._was_blocking)
        else:
            self._to_thread.put(None)

    def _flush(self) -> None:
        self._scheduled = False
        if not self._pollable:
            self._to_thread.put(self._take())
            return
        if not self._rest:
            self._rest = memoryview(self._take())
        try:
            written = os.write(self._fd, self._rest)
            self.writes += 1
        except BlockingIOError:
            written = 0
        except OSError:
            self._break()
            return
        self._rest = self._rest[written:]
        self._took(written)
        waits = bool(self._rest or self._lines)
        if waits and not self._writing:
            self._writing = True
            self._loop.add_writer(self._fd, self._flush)
        elif self._writing and not waits:
            self._writing = False
            self._loop.remove_writer(self._fd)

    def _take(self) -> bytes:
        """What is queued, as one block."""
        data = b"".join(self._lines)
        self._lines.clear()
        return data

    def _took(self, size: int) -> None:
        self._backlog -= size
        if self._backlog <= LOW_WATER_BYTES:
            self._room.set()
        if not self._backlog:
            self._empty.set()

    def _break(self) -> None:
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)
        if self._broken:
            return
        self._broken = True
        self._took(self._backlog)
        self._on_broken()

    def _write_blocking(self) -> None:
        while (data := self._to_thread.get()) is not None:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(self._fd, view) :]
                done = partial(self._took, len(data))
            except OSError:
                done = partial(self._break)
            self.writes += 1
            with suppress(RuntimeError):  # the loop is closed: the process is going
                self._loop.call_soon_threadsafe(done, context=self._context)
