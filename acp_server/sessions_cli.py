"""`acp-server sessions`: what is stored, for people at a terminal, beside running servers.

Owns the commands, their words and their exit statuses: 0 done, 1 could not be done or something is broken,
2 asked for wrongly. Reading takes no claim. How a session looks belongs to `sessions_show` and the exports.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio

from acp_server.conversation import conversation
from acp_server.demo_screen import BOLD, GREEN, RED, YELLOW, Screen, wants_colour
from acp_server.export_html import to_html
from acp_server.export_markdown import to_markdown
from acp_server.export_times import iso, local_in_words
from acp_server.inert import one_line
from acp_server.sessions_check import check
from acp_server.sessions_find import every_session, full_id, short_width
from acp_server.sessions_show import show
from agent_loop import (
    ConfigError,
    HarnessError,
    Loaded,
    NotFound,
    SessionSummary,
    Store,
    header_to_json,
    open_store,
    row_to_json,
)

SHOWN_TITLE_CHARS: Final = 60

_STATE_STYLE: Final = {"ok": GREEN, "torn": YELLOW, "broken": RED}


def sessions(arguments: argparse.Namespace, loaded: Loaded) -> int:
    """Run one of the commands; the exit status."""
    try:
        if loaded.error is not None:
            raise loaded.error
        return anyio.run(partial(_run, arguments, loaded))
    except ConfigError as error:
        return _fail(f"The settings cannot be used: {error}")
    except HarnessError as error:
        return _fail(str(error))
    except BrokenPipeError:
        # Whoever read us has seen enough; the interpreter must not try to flush again as it leaves.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except KeyboardInterrupt:
        return 130


async def _run(arguments: argparse.Namespace, loaded: Loaded) -> int:
    commands: Mapping[str, Callable[..., Any]] = {
        "list": _list,
        "show": _show,
        "check": _check,
        "export": _export,
        "delete": _delete,
    }
    store = open_store(loaded)
    try:
        status: int = await commands[arguments.sessions_command](store, arguments)
        sys.stdout.flush()
        return status
    finally:
        await store.aclose()


async def _list(store: Store, arguments: argparse.Namespace) -> int:
    found = await every_session(store, arguments.cwd)
    if arguments.json:
        _print_json([_summary_json(each) for each in found])
        return 0
    if not found:
        sys.stderr.write("No sessions are stored.\n" if arguments.cwd is None else "No sessions there.\n")
        return 0

    width = short_width([each.header.id for each in found])
    rows = [
        (
            each.header.id[:width],
            local_in_words(each.updated_at),
            _title(each),
            one_line(each.header.cwd or "-"),
        )
        for each in found
    ]
    longest = max(len(row[2]) for row in rows)
    print(_styled(f"{'ID':{width}}  {'UPDATED':16}  {'TITLE':{longest}}  DIRECTORY", BOLD))
    for short, updated, title, cwd in rows:
        print(f"{short:{width}}  {updated}  {title:{longest}}  {cwd}")
    return 0


async def _show(store: Store, arguments: argparse.Namespace) -> int:
    header, rows = await store.peek(await full_id(store, arguments.id))
    if arguments.json:
        _print_json({"session": header_to_json(header), "facts": [row_to_json(row) for row in rows]})
        return 0

    told = conversation(header, rows)
    screen = Screen(sys.stdout, colour=wants_colour(sys.stdout, os.environ))
    where = "" if told.cwd is None else f", in {told.cwd}"
    screen.note(f"{told.title} ({told.id}, {local_in_words(told.created_at)}{where})")
    show(rows, screen)
    return 0


async def _check(store: Store, arguments: argparse.Namespace) -> int:
    if arguments.id is None:
        ids = [each.header.id for each in await every_session(store)]
    else:
        ids = [await full_id(store, arguments.id)]
    findings = []
    for session_id in ids:
        try:
            finding = await check(store, session_id)
        except NotFound:
            if arguments.id is not None:
                raise
            continue  # it was deleted after it was listed
        findings.append(finding)
        if not arguments.json:
            print(f"{finding.session_id}  {_styled(one_line(finding.words), _STATE_STYLE[finding.state])}")
    if arguments.json:
        _print_json([finding.to_json() for finding in findings])
    return 1 if any(finding.state == "broken" for finding in findings) else 0


async def _export(store: Store, arguments: argparse.Namespace) -> int:
    told = conversation(*await store.peek(await full_id(store, arguments.id)))
    is_html = (arguments.output or "").lower().endswith((".html", ".htm"))
    format_ = arguments.format or ("html" if is_html else "markdown")
    page = (to_html if format_ == "html" else to_markdown)(told).encode("utf-8", "replace")
    if arguments.output is None:
        sys.stdout.buffer.write(page)
        return 0
    try:
        Path(arguments.output).write_bytes(page)  # noqa: ASYNC240 — nothing else runs
    except OSError as error:
        return _fail(f"{arguments.output} cannot be written: {error.strerror}.")
    return 0


async def _delete(store: Store, arguments: argparse.Namespace) -> int:
    ids = list(dict.fromkeys([await full_id(store, given) for given in arguments.ids]))
    if not arguments.yes:
        if not sys.stdin.isatty():
            sys.stderr.write("Deleting cannot be undone; say --yes when nobody can be asked.\n")
            return 2
        if not _agreed(ids, {each.header.id: _title(each) for each in await every_session(store)}):
            print("Nothing was deleted.")
            return 1

    status = 0
    for session_id in ids:
        try:
            if not await store.delete(session_id):
                raise NotFound(f"There is no session {one_line(session_id)}.")
            print(f"deleted {session_id}")
        except HarnessError as error:
            status = _fail(str(error))
    return status


def _agreed(ids: Sequence[str], titles: Mapping[str, str]) -> bool:
    for session_id in ids:
        print(f"{session_id}  {titles.get(session_id, '')}".rstrip())
    what = "this session" if len(ids) == 1 else f"these {len(ids)} sessions"
    try:
        return input(f"Delete {what}? It cannot be undone. [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _title(summary: SessionSummary) -> str:
    title = one_line(summary.title) or "-"
    return title if len(title) <= SHOWN_TITLE_CHARS else f"{title[: SHOWN_TITLE_CHARS - 1]}…"


def _directory(summary: SessionSummary) -> str:
    return one_line(summary.header.cwd or "-")


def _summary_json(summary: SessionSummary) -> dict[str, Any]:
    header = summary.header
    return {
        "sessionId": header.id,
        "title": summary.title,
        "createdAt": iso(header.created_at),
        "updatedAt": iso(summary.updated_at),
        "cwd": header.cwd,
        "parent": header.parent,
    }


def _styled(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if wants_colour(sys.stdout, os.environ) else text


def _print_json(value: object) -> None:
    # ASCII, so that neither a terminal's encoding nor what it obeys matters.
    print(json.dumps(value, indent=2))


def _fail(words: str) -> int:
    sys.stderr.write(f"{one_line(words)}\n")
    return 1
