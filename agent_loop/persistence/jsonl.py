"""Keeps session logs as JSON Lines: a header row, then one row per fact or run of deltas.

Owns files, folders, claims and the place each log has reached. Where a log lies belongs to `paths`;
what its rows mean, to `scan`; how lists are made, to `listing`.

1. A log appears whole: the header is written aside, then linked into place, which fails if it is taken.
2. An append happens or it does not: on failure the file is cut back to where it ended before.
3. The cursor moves in the worker thread that wrote, under the log's lock. Whoever waited may be
   cancelled by then; the cursor is right all the same.
4. A claim is an advisory lock on the log itself: it ends with the process that holds it, however it ends.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

from anyio import CancelScope, to_thread

from agent_loop.errors import StoreError
from agent_loop.events.facts import LoggedFact, LogRow, SessionTitle, facts_in
from agent_loop.events.facts_json import row_to_json
from agent_loop.persistence.files import claim, draft, keep_title, opened, sync_data, write_or_undo
from agent_loop.persistence.listing import list_sessions
from agent_loop.persistence.paths import (
    SESSIONS,
    SUFFIX,
    TITLE_SUFFIX,
    bucket_name,
    is_bucket,
    is_session_id,
)
from agent_loop.persistence.rows import (
    checked_places,
    line,
    not_open,
    require_id,
    require_new_id,
    taken,
    unknown,
)
from agent_loop.persistence.scan import read_log
from agent_loop.persistence.store import Page
from agent_loop.session.header import SessionHeader, header_to_json

T = TypeVar("T")

_FOLDER_MODE: Final = 0o700


@dataclass(slots=True)
class _Log:
    """A log this store has claimed, and where its next fact goes; `claim` is an open, locked descriptor."""

    path: Path
    claim: int
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
        self._claiming = threading.Lock()

    async def create(self, header: SessionHeader, check: Callable[[], object] | None = None) -> None:
        """Make the session known; see `Store.create`.

        Raises:
            ValueError: The id cannot be a file name, or the header is not JSON.
        """
        require_new_id(header.id)
        await _in_thread(self._create, header, check)

    async def append(self, session_id: str, rows: Sequence[LogRow], *, first_seq: int, durable: bool) -> None:
        """Write rows behind what is stored; see `Store.append`. Without any, `durable` syncs earlier ones.

        Raises:
            ValueError: Wrong `first_seq`, a gap, or a fact that JSON cannot carry.
        """
        await _in_thread(self._append, self._claimed(session_id), tuple(rows), first_seq, durable)

    async def load(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        """Claim a session and give all of it that is whole; see `Store.load`."""
        require_id(session_id)
        return await _in_thread(self._load, session_id)

    async def peek(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        """What is whole of a session, claimed by whom it may be; see `Store.peek`."""
        require_id(session_id)
        return await _in_thread(self._peek, session_id)

    async def repair(self, session_id: str, closers: Sequence[LoggedFact]) -> None:
        """Cut a torn tail and close what it left open; see `Store.repair`."""
        await _in_thread(self._repair, self._claimed(session_id), tuple(closers))

    async def release(self, session_id: str) -> None:
        """Give up the claim; see `Store.release`."""
        log = self._logs.get(session_id)
        if log is not None:
            self._forget(session_id, log)

    async def list_sessions(self, *, cwd: str | None, cursor: str | None, limit: int) -> Page:
        """Stored sessions with at least one turn, newest first; see `Store.list_sessions`."""
        with _io_errors("read the list of sessions"):
            return await _in_thread(list_sessions, self._sessions, cwd, cursor, limit)

    async def delete(self, session_id: str) -> bool:
        """Forget a session; see `Store.delete`."""
        return is_session_id(session_id) and await _in_thread(self._delete, session_id)

    async def aclose(self) -> None:
        """Give up every claim; every other file is closed already."""
        for session_id in tuple(self._logs):
            await self.release(session_id)

    def _claimed(self, session_id: str) -> _Log:
        log = self._logs.get(session_id)
        if log is None:
            raise not_open(session_id)
        return log

    def _create(self, header: SessionHeader, check: Callable[[], object] | None) -> None:
        if check is not None:
            check()
        row = line(header_to_json(header), "the header")
        bucket = self._sessions / bucket_name(header.cwd)
        path = bucket / (header.id + SUFFIX)

        with self._claiming, _io_errors(f"create the log of session {header.id}"):
            if self._find(header.id) is not None:
                raise taken(header.id)
            for folder in (self._root, self._sessions, bucket):
                os.makedirs(folder, _FOLDER_MODE, exist_ok=True)

            with draft(bucket, row) as whole:
                held = claim(whole, header.id)
                try:
                    os.link(whole, path)
                except OSError as error:
                    os.close(held)
                    if isinstance(error, FileExistsError):
                        raise taken(header.id) from error
                    raise
            self._logs[header.id] = _Log(path, held, size_bytes=len(row))

    def _append(self, log: _Log, batch: tuple[LogRow, ...], first_seq: int, durable: bool) -> None:
        with log.lock, _io_errors(f"write the log of session {log.path.stem}"):
            next_seq = checked_places(log.path.stem, batch, first_seq, log.next_seq)
            rows = b"".join(line(row_to_json(row), f"fact {row.seq}, {row.TYPE},") for row in batch)
            if durable:
                self._sync_folders(log)

            with opened(log.path, os.O_WRONLY | os.O_APPEND) as fd:
                if os.fstat(fd).st_size != log.size_bytes:
                    raise StoreError(
                        "io", f"The log of session {log.path.stem} does not end where it was left."
                    )
                write_or_undo(fd, rows, log.size_bytes, durable)

            log.size_bytes += len(rows)
            log.next_seq = next_seq
            for row in batch:
                if isinstance(row, SessionTitle):
                    keep_title(log.path, row.title)

    def _load(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        with _io_errors(f"read the log of session {session_id}"):
            with self._claiming:
                log = self._logs.get(session_id)
                if log is None:
                    path = self._found(session_id)
                    log = self._logs[session_id] = _Log(path, claim(path, session_id))
            try:
                with log.lock:
                    header, rows, size = _read(log.path, session_id)
                    log.next_seq, log.size_bytes = sum(map(facts_in, rows)), size
            except BaseException:
                self._forget(session_id, log)
                raise
        return header, rows

    def _peek(self, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
        with _io_errors(f"read the log of session {session_id}"):
            return _read(self._found(session_id), session_id)[:2]

    def _repair(self, log: _Log, closers: tuple[LoggedFact, ...]) -> None:
        doing = f"repair the log of session {log.path.stem}"
        with log.lock, _io_errors(doing), opened(log.path, os.O_WRONLY) as fd:
            if os.fstat(fd).st_size > log.size_bytes:
                os.ftruncate(fd, log.size_bytes)
                sync_data(fd)
        if closers:
            self._append(log, closers, log.next_seq, True)

    def _delete(self, session_id: str) -> bool:
        with self._claiming, _io_errors(f"delete session {session_id}"):
            path = self._find(session_id)
            if path is None:
                return False
            log = self._logs.get(session_id) or _Log(path, claim(path, session_id))
            with log.lock:
                path.unlink(missing_ok=True)
                path.with_suffix(TITLE_SUFFIX).unlink(missing_ok=True)
            self._logs[session_id] = log
            self._forget(session_id, log)
            return True

    def _forget(self, session_id: str, log: _Log) -> None:
        """Give up a claim, once, whoever asks; not one that was taken since."""
        if self._logs.get(session_id) is log:
            del self._logs[session_id]
            os.close(log.claim)

    def _found(self, session_id: str) -> Path:
        path = self._find(session_id)
        if path is None:
            raise unknown(session_id)
        return path

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
            with suppress(OSError), opened(folder, os.O_RDONLY) as fd:
                os.fsync(fd)
        log.folders_synced = True


async def _in_thread(work: Callable[..., T], *args: object) -> T:
    """Disk work is short and must not be left half done: a cancel waits for it."""
    with CancelScope(shield=True):
        result = await to_thread.run_sync(partial(work, *args))
    return result  # noqa: RET504 - to mypy any scope may swallow, and a return inside could be missed


def _read(path: Path, session_id: str) -> tuple[SessionHeader, list[LogRow], int]:
    header, rows, size = read_log(path.read_bytes(), session_id)
    _check_folder(header, path)
    return header, rows, size


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
def _io_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError("io", f"Could not {doing}: {error.strerror}.") from error
