"""The FileAccess seam on this machine's disk.

Every touch of the disk happens in a worker thread. A read may be abandoned by a cancel, it leaves
nothing behind; a write may not, so that it happens whole or not at all.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from anyio.to_thread import run_sync

from agent_loop.ids import new_id
from agent_loop.workspace.files import Entry, FileTooLarge, Survey

_MORE_BYTES = 64 * 1024
# Stays in the processor's cache between being read and being compared.
_BLOCK_BYTES = 256 * 1024

SURVEY_LIMIT = 10_000
"""Names a directory may hold, all below it counted, for its deletion to be one call."""


class LocalFiles:
    """Files as the disk holds them. Errors are the disk's own, with words where it has none."""

    async def read(self, path: str, *, limit_bytes: int) -> bytes:
        """The file's bytes; anything but a regular file is refused, because it may never end.

        Raises:
            FileTooLarge: It holds more than `limit_bytes`.
        """
        return await run_sync(_read, path, limit_bytes, abandon_on_cancel=True)

    async def holds(self, path: str, content: bytes) -> bool:
        """Whether a file's bytes are these; it is never all in memory for that."""
        return await run_sync(_holds, path, content, abandon_on_cancel=True)

    async def write(self, path: str, *content: bytes | memoryview) -> str:
        """Replace or create the file, whole or not at all; parents are made, mode and links are kept."""
        await run_sync(_write, path, content)
        return ""

    async def entries(self, path: str) -> list[Entry]:
        """What a directory holds, sorted by name; kinds are `file`, `directory`, `link` and `other`."""
        return await run_sync(_entries, path, abandon_on_cancel=True)

    async def survey(self, path: str) -> Survey:
        """What is there under this name; see `FileAccess.survey`."""
        return await run_sync(_survey, path, abandon_on_cancel=True)

    async def delete(self, path: str) -> None:
        """Take it away, whole, before anything of it is destroyed."""
        await run_sync(_delete, path)

    async def move(self, source: str, target: str) -> None:
        """Give it another name on the same disk.

        Raises:
            FileExistsError: There is something under that name.
        """
        await run_sync(_move, source, target)


def _read(path: str, limit_bytes: int) -> bytes:
    # O_NONBLOCK: opening a FIFO would else wait for its writer, in a thread nobody can stop.
    with open(path, "rb", buffering=0, opener=partial(_open, extra=os.O_NONBLOCK)) as file:
        found = os.fstat(file.fileno())
        _refuse_irregular(path, found.st_mode)

        if found.st_size > limit_bytes:
            raise FileTooLarge(f"{path} has {found.st_size:,} bytes, more than {limit_bytes:,}")

        # The size may be a lie (files the kernel makes up say 0), so one byte more is asked for.
        parts: list[bytes] = []
        size = 0
        while size <= limit_bytes and (
            part := file.read(min(max(found.st_size - size, 0) + _MORE_BYTES, limit_bytes + 1 - size))
        ):
            parts.append(part)
            size += len(part)

    if size > limit_bytes:
        raise FileTooLarge(f"{path} has more than {limit_bytes:,} bytes")

    # A file that is what it says comes as one part, and is not copied again.
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _holds(path: str, content: bytes) -> bool:
    with open(path, "rb", buffering=0, opener=partial(_open, extra=os.O_NONBLOCK)) as file:
        _refuse_irregular(path, os.fstat(file.fileno()).st_mode)
        block = bytearray(_BLOCK_BYTES)
        looked_at = 0
        while size := file.readinto(block):
            if block[:size] != content[looked_at : looked_at + size]:
                return False
            looked_at += size
    return looked_at == len(content)


def _write(path: str, content: Sequence[bytes | memoryview]) -> None:
    target = os.path.realpath(path)
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    mode = _mode_to_keep(target)
    draft = os.path.join(parent, f".{new_id()}.draft")

    try:
        # Private until it is whole: the file it replaces may be. A new file takes what the umask leaves.
        with open(draft, "xb", opener=partial(_open, mode=0o666 if mode is None else 0o600)) as file:
            file.writelines(content)
            if mode is not None:
                os.fchmod(file.fileno(), mode)

        os.replace(draft, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(draft)
        raise


def _mode_to_keep(target: str) -> int | None:
    """The permission bits of the file to be replaced; None when there is none yet."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None

    _refuse_irregular(target, mode)
    # Replacing needs only a writable directory; a read-only file would fall without a word.
    if not os.access(target, os.W_OK):
        raise PermissionError(f"{target} is read-only")

    return stat.S_IMODE(mode)


def _survey(path: str) -> Survey:
    top = os.lstat(path)
    if not stat.S_ISDIR(top.st_mode):
        return Survey(_kind(top.st_mode), 1, top.st_size, _signature([(path, top)]))

    seen, files, size_bytes = [(path, top)], 0, 0
    for folder, folders, names in os.walk(path):
        for name in (*folders, *names):
            below = os.path.join(folder, name)
            status = os.lstat(below)
            if not stat.S_ISDIR(status.st_mode):
                files, size_bytes = files + 1, size_bytes + status.st_size
            seen.append((below, status))
            if len(seen) > SURVEY_LIMIT:
                return Survey("directory", files, size_bytes, None)
    return Survey("directory", files, size_bytes, _signature(seen))


def _signature(seen: list[tuple[str, os.stat_result]]) -> str:
    facts = sorted((path, it.st_mode, it.st_ino, it.st_size, it.st_mtime_ns) for path, it in seen)
    return hashlib.sha256(repr(facts).encode("utf-8", "surrogateescape")).hexdigest()


def _delete(path: str) -> None:
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    # Renamed first: whatever happens while it is emptied, nobody meets half of it under its name.
    doomed = os.path.join(os.path.dirname(path), f".{new_id()}.deleted")
    os.rename(path, doomed)
    shutil.rmtree(doomed)


def _move(source: str, target: str) -> None:
    if os.path.lexists(target):
        raise FileExistsError(f"{target} exists already")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    os.rename(source, target)


def _entries(path: str) -> list[Entry]:
    with os.scandir(path) as found:
        return sorted(map(_entry, found), key=lambda entry: entry.name)


def _entry(found: os.DirEntry[str]) -> Entry:
    try:
        status = found.stat(follow_symlinks=False)
    except OSError:  # it went away between the listing and the look
        return Entry(found.name, "other", 0)

    return Entry(found.name, _kind(status.st_mode), status.st_size)


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def _refuse_irregular(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{path} is a directory")
    if not stat.S_ISREG(mode):
        raise OSError(f"{path} is no regular file but a {_IRREGULAR.get(stat.S_IFMT(mode), 'device')}")


def _open(path: str, flags: int, *, extra: int = 0, mode: int = 0o666) -> int:
    return os.open(path, flags | extra | os.O_CLOEXEC | os.O_NOCTTY, mode)


_IRREGULAR = {stat.S_IFIFO: "FIFO", stat.S_IFSOCK: "socket"}
