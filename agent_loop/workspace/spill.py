"""Keeps on disk what a command printed beyond the bound: a private file, made when it is needed.

A disk that fails costs the file, never the command.
"""

import logging
import os
from contextlib import suppress

from anyio.to_thread import run_sync

from agent_loop.errors import in_words
from agent_loop.ids import new_id

SPILL_LIMIT_BYTES = 2**30
_WRITE_BYTES = 1024 * 1024

_log = logging.getLogger(__name__)


class Spill:
    """One command's file. It is opened anew for each write: no descriptor can be lost to a cancel.

    Attributes:
        started: True once bytes came, whether or not the disk took them.
        path: The file, readable by its owner alone in a folder of the same kind; None while there is none.
    """

    def __init__(self, folder: str, limit_bytes: int = SPILL_LIMIT_BYTES) -> None:
        self._folder = folder
        self._limit = limit_bytes
        self._waiting: list[bytes] = []
        self._written = 0
        self.started = False
        self.path: str | None = None

    async def add(self, *parts: bytes) -> None:
        """Append; what is beyond the limit is dropped, and a last line says so."""
        self.started = True
        self._waiting.extend(parts)
        if sum(map(len, self._waiting)) >= _WRITE_BYTES:
            await self.flush()

    async def flush(self) -> None:
        """Write what still waits to be written together, in a worker thread."""
        parts, self._waiting = self._waiting, []
        if any(parts):
            await run_sync(self._write, parts)

    async def discard(self) -> None:
        """Remove the file: nobody will learn its name."""
        if self.path is not None:
            await run_sync(self._remove)

    def _write(self, parts: list[bytes]) -> None:
        room = self._limit - self._written
        if room <= 0 or (self._written and self.path is None):
            return

        size = sum(map(len, parts))
        if size > room:
            parts = [b"".join(parts)[:room], b"\n[the rest was not kept]\n"]

        try:
            self._append(parts)
        except OSError as error:
            _log.warning("output of a command was not kept in %s: %s", self._folder, in_words(error))
            self._remove()

        self._written += size

    def _append(self, parts: list[bytes]) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        if self.path is None:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            os.chmod(self._folder, 0o700)
            self.path = os.path.join(self._folder, f"output-{new_id()}.log")
            flags |= os.O_CREAT | os.O_EXCL

        with open(os.open(self.path, flags, 0o600), "ab") as file:
            file.writelines(parts)

    def _remove(self) -> None:
        if self.path is not None:
            with suppress(OSError):
                os.unlink(self.path)
            self.path = None
