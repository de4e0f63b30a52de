"""Lists the sessions below a folder without reading their logs.

One `stat` a log to order them, and for each row shown the log's first rows and the title beside it.
"""

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson

from agent_loop.events.facts import UserMessage
from agent_loop.events.facts_json import fact_from_json
from agent_loop.messages import text_of
from agent_loop.persistence.paths import SUFFIX, TITLE_SUFFIX, is_bucket, is_session_id
from agent_loop.persistence.store import Page, SessionSummary
from agent_loop.session.header import SessionHeader, header_from_json
from agent_loop.session.titles import title_from

HEAD_BYTES: Final = 16 * 1024
# A first prompt may carry a whole file; its first line is all that is wanted.
LONG_HEAD_BYTES: Final = 4 * 1024 * 1024
FIRST_ROWS: Final = 8
TURN_START: Final = b'"type":"turn/start"'


def list_sessions(folder: Path, cwd: str | None, cursor: str | None, limit: int) -> Page:
    """A page of the sessions below `folder`, newest first; see `Store.list_sessions`.

    Raises:
        ValueError: The cursor is none of ours.
        OSError: The folder is there and cannot be read.
    """
    after = None if cursor is None else place_of(cursor)
    found: list[SessionSummary] = []
    for place, path in sorted(_logs(folder, cwd), reverse=True):
        if after is not None and place >= after:
            continue
        summary = _summary(Path(path), place[0])
        if summary is None:
            continue
        if len(found) == limit:
            return Page(tuple(found), cursor_of(found[-1].updated_at, found[-1].header.id))
        found.append(summary)
    return Page(tuple(found), None)


def _logs(folder: Path, cwd: str | None) -> Iterator[tuple[tuple[int, str], str]]:
    """Every log with its place in the order: time of the last write, then id."""
    real = None if cwd is None else os.path.realpath(cwd)
    try:
        buckets = [entry for entry in os.scandir(folder) if is_bucket(entry.name)]
    except FileNotFoundError:
        return
    for bucket in buckets:
        wanted: bool | None = True if real is None else None
        with os.scandir(bucket.path) as entries:
            for entry in entries:
                session_id = entry.name.removesuffix(SUFFIX)
                if not entry.name.endswith(SUFFIX) or not is_session_id(session_id):
                    continue
                if wanted is None:
                    # All of a bucket work in one directory: one header tells.
                    header = _header(Path(entry.path))
                    if header is None:
                        continue
                    wanted = header.cwd is not None and os.path.realpath(header.cwd) == real
                if not wanted:
                    break
                try:
                    yield (entry.stat().st_mtime_ns // 1_000_000, session_id), entry.path
                except FileNotFoundError:
                    continue


def _summary(path: Path, updated_at: int) -> SessionSummary | None:
    """What a list shows of a log; None for one without a turn, or that is no log."""
    rows = _first_rows(path)
    # First: editors leave many sessions behind that nobody ever spoke in.
    if not any(TURN_START in row for row in rows[1:]):
        return None
    header = _header_in(rows, path)
    if header is None:
        return None
    title = _kept_title(path)
    if title is None:
        rows = _first_rows(path, LONG_HEAD_BYTES)
        title = next((title_from(text) for row in rows[1:] if (text := _prompt_in(row))), "")
    return SessionSummary(header, title, updated_at)


def _first_rows(path: Path, limit_bytes: int = HEAD_BYTES) -> list[bytes]:
    try:
        with path.open("rb", buffering=0) as file:
            head = file.read(limit_bytes) or b""
    except FileNotFoundError:
        return []
    return head.split(b"\n")[:FIRST_ROWS] if head.count(b"\n") > 1 else head.splitlines()[:1]


def _header(path: Path) -> SessionHeader | None:
    return _header_in(_first_rows(path), path)


def _header_in(rows: list[bytes], path: Path) -> SessionHeader | None:
    try:
        header = header_from_json(orjson.loads(rows[0]))
    except (IndexError, ValueError):
        return None
    return header if header.id == path.stem else None


def _prompt_in(row: bytes) -> str:
    try:
        fact = fact_from_json(orjson.loads(row))
    except ValueError:
        return ""
    return text_of(fact.content) if isinstance(fact, UserMessage) else ""


def _kept_title(path: Path) -> str | None:
    """The title beside the log; a power cut may have left an empty one."""
    try:
        return path.with_suffix(TITLE_SUFFIX).read_bytes().decode(errors="replace") or None
    except OSError:
        return None


def cursor_of(updated_at: int, session_id: str) -> str:
    """The cursor of what follows that place in a list, of any store."""
    raw: Any = [updated_at, session_id]
    return base64.urlsafe_b64encode(orjson.dumps(raw)).decode()


def place_of(cursor: str) -> tuple[int, str]:
    """The place behind which a list goes on: time of the last write, then id.

    Raises:
        ValueError: The cursor is none of ours.
    """
    try:
        updated_at, session_id = orjson.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
    except (ValueError, TypeError) as error:
        raise ValueError("not a cursor of this list") from error
    if type(updated_at) is not int or not isinstance(session_id, str):
        raise ValueError("not a cursor of this list")
    return updated_at, session_id
