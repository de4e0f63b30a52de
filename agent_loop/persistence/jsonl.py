"""Keeps session logs as JSON Lines: a header row, then one row per fact or run of deltas.

Owns files, folders and the place each log has reached. Where a log lies belongs to `paths`; what
its rows mean, to `scan`.

1. A log appears whole: the header is written aside, then linked into place, which fails if it is taken.
2. An append happens or it does not: on failure the file is cut back to where it ended before.
3. The cursor moves in the worker thread that wrote, under the log's lock. Whoever waited may be
   cancelled by then; the cursor is right all the same.
"""

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import uuid4

import orjson
from anyio import CancelScope, to_thread

from agent_loop.errors import Duplicate, NotFound, StoreError
from agent_loop.events.facts import LogRow, facts_in
from agent_loop.events.facts_json import row_to_json
from agent_loop.persistence.paths import SESSIONS, SUFFIX, bucket_name, is_bucket, is_session_id
from agent_loop.persistence.scan import read_log
from agent_loop.session.header import SessionHeader, header_to_json

_FOLDER_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
_SHOWN_ID_CHARS: Final = 64

# macOS has no fdatasync.
_sync_data = getattr(os, "fdatasync", os.fsync)


@dataclass(slots=True)
class _Log:
    """A log this store has created or loaded, and where its next fact goes."""

    path: Path
    next_seq: int = 0
    size_bytes: int = 0
    folders_synced: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


class JsonlStore:
    """A `Store` on the local disk, below `root`; the folder is made when the first session is."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = Path(os.path.abspath(root))
        self._sessions = self._root / SESSIONS
        self._logs: dict[str, _Log] = {}
        self._creating = threading.Lock()

    async def create(self, header: SessionHeader) -> None:
        """Make the session known; see `Store.create`.

        Raises:
            ValueError: The id cannot be a file name, or the header is not JSON.
        """
        if not is_session_id(header.id):
            raise ValueError(f"{_shown(header.id)} is no session id: 1 to 128 of A-Z a-z 0-9 . _ - are")
        with CancelScope(shield=True):
            await to_thread.run_sync(self._create, header)

    async def append(self, session_id: str, rows: Sequence[LogRow], *, first_seq: int, durable: bool) -> None:
        """Write rows behind what is stored; see `Store.append`. Without any, `durable` syncs earlier ones.

        Raises:
            NotFound: This store has neither created nor loaded the session.
            ValueError: Wrong `first_seq`, a gap, or a fact that JSON cannot carry.
        """
        log = self._logs.get(session_id)
        if log is None:
            raise NotFound(f"Session {_shown(session_id)} is not open; create or load it first.")

        batch = tuple(rows)
        with CancelScope(shield=True):
            await to_thread.run_sync(self._append, session_id, log, batch, first_seq, durable)

    async def load(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        """Everything stored of a session; see `Store.load`."""
        if not is_session_id(session_id):
            raise NotFound(f"There is no session {_shown(session_id)}.")
        return await to_thread.run_sync(self._load, session_id)

    async def aclose(self) -> None:
        """Forget what is open; every file is closed already."""
        self._logs.clear()

    def _create(self, header: SessionHeader) -> None:
        line = _line(header_to_json(header), "the header")
        bucket = self._sessions / bucket_name(header.cwd)
        path = bucket / (header.id + SUFFIX)

        with self._creating, _io_errors(f"create the log of session {header.id}"):
            if self._find(header.id) is not None:
                raise _taken(header.id)
            for folder in (self._root, self._sessions, bucket):
                os.makedirs(folder, _FOLDER_MODE, exist_ok=True)

            with _draft(bucket, line) as draft:
                try:
                    os.link(draft, path)
                except FileExistsError as error:
                    raise _taken(header.id) from error

            self._logs[header.id] = _Log(path, size_bytes=len(line))

    def _append(
        self, session_id: str, log: _Log, batch: tuple[LogRow, ...], first_seq: int, durable: bool
    ) -> None:
        with log.lock, _io_errors(f"write the log of session {session_id}"):
            next_seq = _checked_places(session_id, batch, first_seq, log.next_seq)
            rows = b"".join(_line(row_to_json(row), f"fact {row.seq}, {row.TYPE},") for row in batch)
            if durable:
                self._sync_folders(log)

            with _opened(log.path, os.O_WRONLY | os.O_APPEND) as fd:
                if os.fstat(fd).st_size != log.size_bytes:
                    raise StoreError("io", f"The log of session {session_id} does not end where it was left.")
                _write_or_undo(fd, rows, log.size_bytes, durable)

            log.size_bytes += len(rows)
            log.next_seq = next_seq

    def _load(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        with _io_errors(f"read the log of session {session_id}"):
            path = self._find(session_id)
            if path is None:
                raise NotFound(f"There is no session {session_id}.")

            log = self._logs.get(session_id) or _Log(path)
            with log.lock:
                data = path.read_bytes()
                header, facts = read_log(data, session_id)
                _check_folder(header, path)
                log.next_seq, log.size_bytes = sum(map(facts_in, facts)), len(data)

        # Of two first loads at once the earlier stays: it may have been appended to already.
        self._logs.setdefault(session_id, log)
        return header, facts

    def _find(self, session_id: str) -> Path | None:
        try:
            names = sorted(os.listdir(self._sessions))
        except FileNotFoundError:
            return None

        for name in filter(is_bucket, names):
            path = self._sessions / name / (session_id + SUFFIX)
            with suppress(FileNotFoundError):
                path.stat()
                return path
        return None

    def _sync_folders(self, log: _Log) -> None:
        """Make the disk know the file's name too; once, because names never change."""
        if log.folders_synced:
            return
        for folder in (log.path.parent, self._sessions, self._root):
            # Some file systems cannot sync a folder; the file's own sync still tells of a failing disk.
            with suppress(OSError), _opened(folder, os.O_RDONLY) as fd:
                os.fsync(fd)
        log.folders_synced = True


def _checked_places(session_id: str, rows: tuple[LogRow, ...], first_seq: int, next_seq: int) -> int:
    """The place behind `rows`, once they are found to stand where they say."""
    if first_seq != next_seq:
        raise ValueError(f"session {session_id} goes on at seq {next_seq}, not at {first_seq}")
    for row in rows:
        if row.seq != next_seq:
            raise ValueError(f"session {session_id}: a fact with seq {row.seq} stands in place {next_seq}")
        next_seq += facts_in(row)
    return next_seq


def _check_folder(header: SessionHeader, path: Path) -> None:
    try:
        right = bucket_name(header.cwd) == path.parent.name
    except ValueError:
        right = False
    if not right:
        raise StoreError(
            "corrupt", f"The log of session {header.id} lies in a folder of another directory's sessions."
        )


@contextmanager
def _draft(folder: Path, line: bytes) -> Iterator[Path]:
    path = folder / f".draft-{uuid4().hex}"
    try:
        with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
            _write_all(fd, line)
        yield path
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    fd = os.open(path, flags | os.O_CLOEXEC, _FILE_MODE)
    try:
        yield fd
    finally:
        os.close(fd)


def _write_or_undo(fd: int, rows: bytes, size_bytes: int, durable: bool) -> None:
    try:
        _write_all(fd, rows)
        if durable:
            _sync_data(fd)
    except BaseException:
        # Should this fail as well, the log no longer ends where it was left, and nothing is added to it.
        with suppress(OSError):
            os.ftruncate(fd, size_bytes)
        raise


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _line(row: object, name: str) -> bytes:
    try:
        return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError as error:
        raise ValueError(f"{name} cannot be written as JSON: {error}") from error


@contextmanager
def _io_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError("io", f"Could not {doing}: {error.strerror}.") from error


def _taken(session_id: str) -> Duplicate:
    return Duplicate(f"Session {session_id} is stored already.")


def _shown(session_id: str) -> str:
    """An id from outside, fit for a message."""
    return repr(session_id[:_SHOWN_ID_CHARS])
