"""Stores many sessions of one short turn, in several projects, none as new as the one before it.

    many_sessions.py STATE_DIR COUNT

Prints where they lie.
"""

import os
import sys
import time
from pathlib import Path
from typing import Final

import orjson

from agent_loop.events.facts import (
    AssistantMessage,
    EndReason,
    SessionTitle,
    StepEnd,
    StepStart,
    Trigger,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from agent_loop.events.facts_json import row_to_json
from agent_loop.messages import USER, Text
from agent_loop.persistence.paths import SESSIONS, SUFFIX, TITLE_SUFFIX, bucket_name
from agent_loop.session.header import SessionHeader, header_to_json
from agent_loop.session.log import SessionLog

PROJECTS: Final = 20
TITLE: Final = "Make the import of settings faster"


def rows() -> bytes:
    """The turn they all have."""
    log = SessionLog()
    for fact in (
        TurnStart(1, Trigger("message", USER), ("user-message-1",)),
        UserMessage(1, "user-message-1", (Text(f"{TITLE}, and tell me what you did. " * 8),), USER),
        StepStart(1, 1),
        AssistantMessage(1, 1, 1, (Text("It reads them once now. " * 80),)),
        StepEnd(1, 1),
        TurnEnd(1, EndReason("completed")),
        SessionTitle(TITLE, "prompt"),
    ):
        log.append(fact)
    return b"".join(_line(row_to_json(row)) for row in log.rows_since(0))


def main(state: Path, sessions: int) -> None:
    """Write them past the store, which is slow at so many; whoever lists them checks that it saw them."""
    turn, now_ns = rows(), time.time_ns()
    for number in range(sessions):
        cwd = f"/work/project-{number % PROJECTS}"
        folder = state / SESSIONS / bucket_name(cwd)
        folder.mkdir(parents=True, exist_ok=True)
        session_id = f"session-{number:05d}"
        log = folder / (session_id + SUFFIX)
        log.write_bytes(_line(header_to_json(SessionHeader(session_id, 0, cwd))) + turn)
        log.with_suffix(TITLE_SUFFIX).write_text(TITLE)
        written_ns = now_ns - number * 1_000_000_000
        os.utime(log, ns=(written_ns, written_ns))
    print(orjson.dumps({"folder": str(state / SESSIONS)}).decode())


def _line(row: object) -> bytes:
    return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


main(Path(sys.argv[1]), int(sys.argv[2]))
