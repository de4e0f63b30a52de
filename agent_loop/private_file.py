"""Files only their owner may read: changed whole, one process at a time.

Every function blocks: call it in a worker thread.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

_FILE_MODE: Final = 0o600
_FOLDER_MODE: Final = 0o700


@contextmanager
def claimed(path: Path) -> Iterator[None]:
    """Hold the right to change a file that all who change it ask for; its folder is made when missing.

    Raises:
        OSError: The folder or the lock beside the file cannot be made.
    """
    path.parent.mkdir(mode=_FOLDER_MODE, parents=True, exist_ok=True)
    lock = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def replace_whole(path: Path, data: bytes) -> None:
    """Put a new file in the place of the old one, on the disk when this returns.

    Raises:
        OSError: It could not be written; the old one stands.
    """
    draft = path.with_suffix(f".{uuid4().hex}")
    try:
        with open(draft, "xb", opener=_private) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def readable_by_others(path: Path) -> bool:
    """Whether somebody else than its owner may read a file; one that is not there nobody reads."""
    try:
        return bool(os.stat(path).st_mode & (stat.S_IRGRP | stat.S_IROTH))
    except OSError:
        return False


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, _FILE_MODE)
