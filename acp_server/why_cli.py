"""`acp-server why SESSION CALL`: who allowed a call, by which rule, and what ran, from the stored log.

Exit statuses: 0 told, 1 nothing is known of it.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import anyio

from acp_server.export_times import local_in_words
from acp_server.inert import inert, one_line
from acp_server.sessions_find import full_id
from agent_loop import (
    HarnessError,
    Loaded,
    LogRow,
    NotFound,
    PermissionAsked,
    PermissionDecided,
    ToolCall,
    ToolResult,
    ToolStarted,
    open_store,
    row_to_json,
    text_of,
)


@dataclass(slots=True)
class _Story:
    """What a log says of one call."""

    call: ToolCall
    asked: PermissionAsked | None = None
    decided: PermissionDecided | None = None
    started: ToolStarted | None = None
    result: ToolResult | None = None


def why(arguments: argparse.Namespace, loaded: Loaded) -> int:
    """Tell of one call; the exit status."""
    try:
        if loaded.error is not None:
            raise loaded.error
        session_id, story = anyio.run(_found, arguments.session, arguments.call, loaded)
    except HarnessError as error:
        sys.stderr.write(f"{one_line(str(error))}\n")
        return 1

    if arguments.json:
        print(json.dumps({"sessionId": session_id, **_to_json(story)}, indent=2))
    else:
        for line in _lines(story):
            print(line)
    return 0


async def _found(session: str, call_id: str, loaded: Loaded) -> tuple[str, _Story]:
    store = open_store(loaded)
    try:
        session_id = await full_id(store, session)
        _, rows = await store.peek(session_id)
    finally:
        await store.aclose()
    story = None
    for row in rows:
        story = _told(story, row, call_id)
    if story is None:
        raise NotFound(f"There is no call {call_id} in the session {session_id}.")
    return session_id, story


def _told(story: _Story | None, row: LogRow, call_id: str) -> _Story | None:
    match row:
        case ToolCall() if row.call_id == call_id:
            return _Story(row)
        case PermissionAsked() if story is not None and row.call_id == call_id:
            story.asked = row
        case PermissionDecided() if story is not None and row.call_id == call_id:
            story.decided = row
        case ToolStarted() if story is not None and row.call_id == call_id:
            story.started = row
        case ToolResult() if story is not None and row.call_id == call_id:
            story.result = row
        case _:
            pass
    return story


def _lines(story: _Story) -> Iterator[str]:
    call = story.call
    yield f"call     {one_line(call.name)} {one_line(call.call_id)}, turn {call.turn}, step {call.step}"
    if story.asked is not None:
        options = ", ".join(story.asked.options)
        yield f"asked    {local_in_words(story.asked.time)}, by {_rule(story.asked.rule)}; offered {options}"
    yield f"decided  {_decision(story)}"
    if story.started is None:
        yield f"ran      nothing{_because(story.result)}"
        return
    yield f"ran      {local_in_words(story.started.time)}, with these arguments:"
    for line in _arguments(call.arguments).split("\n"):
        yield f"         {line}"
    yield f"ended    {_end(story.result)}"


def _decision(story: _Story) -> str:
    it = story.decided
    if it is None:
        return "by nobody" if story.started is None else "by nobody: it only looks"
    verb = "allowed" if it.allowed else "denied"
    said = {
        "user": f" by the person ({it.option})",
        "rule": f" by what the person said beforehand: {_rule(it.rule)}",
        "mode": f" by {_rule(it.rule)}",
        "cancel": ": the question was dismissed or its turn cancelled",
        "closed": ": nobody could be asked",
    }
    return f"{local_in_words(it.time)}, {verb}{said[it.by]}"


def _rule(rule: str | None) -> str:
    return one_line(rule or "nothing on record")


def _because(result: ToolResult | None) -> str:
    return "" if result is None else f": {one_line(text_of(result.content))}"


def _end(result: ToolResult | None) -> str:
    if result is None:
        return "not on record"
    words = "failed" if result.is_error else "done"
    ended = result.exit
    if ended is not None:
        words = f"exit {ended.code}" if ended.signal is None else f"killed by {one_line(ended.signal)}"
    return f"{local_in_words(result.time)}, {words} ({result.outcome})"


def _arguments(text: str) -> str:
    """One argument after another, texts as they are but for what a terminal would obey."""
    try:
        given = json.loads(text)
    except ValueError:
        return inert(text)
    if not isinstance(given, dict):
        return inert(text)
    return "\n".join(
        f"{one_line(name)}: {inert(value) if isinstance(value, str) else json.dumps(value)}"
        for name, value in given.items()
    )


def _to_json(story: _Story) -> dict[str, object]:
    facts = {
        "call": story.call,
        "asked": story.asked,
        "decided": story.decided,
        "started": story.started,
        "result": story.result,
    }
    return {name: None if fact is None else row_to_json(fact) for name, fact in facts.items()}
