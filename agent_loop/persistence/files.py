"""What the JSONL store does to single files: whole or not at all, private, and claimed by one process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from agent_loop.persistence.paths import TITLE_SUFFIX
from agent_loop.persistence.rows import locked

_FILE_MODE: Final = 0o600

# macOS has no fdatasync.
sync_data = getattr(os, "fdatasync", os.fsync)


def claim(path: Path, session_id: str) -> int:
    """An open descriptor of the log, locked; another process, or another store, gets none meanwhile."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(fd)
        raise locked(session_id) from error
    except BaseException:
        os.close(fd)
        raise
    return fd


def keep_title(path: Path, title: str) -> None:
    """Beside the log, so that a list need not read it; made anew from the log whenever one is set."""
    draft = path.with_suffix(f"{TITLE_SUFFIX}.{uuid4().hex}")
    with suppress(OSError):
        try:
            with opened(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
                write_all(fd, title.encode())
            os.replace(draft, path.with_suffix(TITLE_SUFFIX))
        finally:
            draft.unlink(missing_ok=True)


@contextmanager
def draft(folder: Path, line: bytes) -> Iterator[Path]:
    path = folder / f".draft-{uuid4().hex}"
    try:
        with opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
            write_all(fd, line)
        yield path
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    fd = os.open(path, flags | os.O_CLOEXEC, _FILE_MODE)
    try:
        yield fd
    finally:
        os.close(fd)


def write_or_undo(fd: int, rows: bytes, size_bytes: int, durable: bool) -> None:
    try:
        write_all(fd, rows)
        if durable:
            sync_data(fd)
    except BaseException:
        # Should this fail as well, the log no longer ends where it was left, and nothing is added to it.
        with suppress(OSError):
            os.ftruncate(fd, size_bytes)
        raise


def write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
