"""Stores a long session and a short one, as real ones are: thoughts, words, tool calls with cards.

    long_session.py STATE_DIR CWD ROWS EVENTS

ROWS gets the long one's facts once more, as one row each. Prints what a replay has to show of it.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import orjson

from agent_loop.cards import Card, CardCode, CardDiff, CardItem, CardKind, CardOutput, Location
from agent_loop.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Finish,
    FinishKind,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from agent_loop.events.facts import (
    AssistantChunk,
    AssistantMessage,
    EndReason,
    Exit,
    LoggedFact,
    PermissionAsked,
    PermissionDecided,
    SessionTitle,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    ToolStarted,
    Trigger,
    TurnEnd,
    TurnStart,
    UsageRecorded,
    UserMessage,
)
from agent_loop.events.facts_json import fact_to_json
from agent_loop.messages import USER, Content, Reasoning, Text, ToolCallBlock
from agent_loop.persistence.jsonl import JsonlStore
from agent_loop.session.header import SessionHeader
from agent_loop.session.invariants import Invariants
from agent_loop.session.log import SessionLog

THOUGHTS = 24
WORDS = 16
ARGUMENTS = 12
LAST_WORDS = 120
"""Deltas: of a step's thoughts, of its words, of a call's arguments, of a turn's last step."""

READ_LINES = 30
SHORT_EVENTS = 500


class Tool(NamedTuple):
    name: str
    kind: CardKind


TOOLS = (Tool("read", "read"), Tool("edit", "edit"), Tool("run_command", "execute"))

USAGE = Usage(input_tokens=12_000, output_tokens=300, cache_read_tokens=11_000)


def session(events: int) -> Iterator[LoggedFact]:
    """Facts of whole turns, at least so many."""
    made, numbers = 0, count(1)
    while made < events:
        for fact in _turn(next(numbers)):
            made += 1
            yield fact


def _turn(turn: int) -> Iterator[LoggedFact]:
    message = f"user-message-{turn}"
    yield TurnStart(turn, Trigger("message", USER), (message,))
    yield UserMessage(turn, message, (Text(f"Please see to number {turn}, and say what came of it."),), USER)
    if turn == 1:
        yield SessionTitle("Please see to number 1", "prompt")
    for step in (1, 2):
        yield from _tool_step(turn, step)
    yield StepStart(turn, 3)
    yield from _answer(turn, 3, _deltas("text", LAST_WORDS, 0), "stop")
    yield StepEnd(turn, 3)
    yield TurnEnd(turn, EndReason("completed"))


def _tool_step(turn: int, step: int) -> Iterator[LoggedFact]:
    tool = TOOLS[(turn + step) % len(TOOLS)]
    call_id, path = f"call-{turn}-{step}", f"/project/src/module_{turn % 40}.py"
    arguments = json.dumps({"path": path, "text": _code(f"{turn}.{step} new", 10)})
    card = Card(tool.kind, f"src/module_{turn % 40}.py", _body(tool, turn, step, path), (Location(path),))

    yield StepStart(turn, step)
    chunks = [
        *_deltas("reasoning", THOUGHTS, 0),
        *_deltas("text", WORDS, 1),
        *_call(2, call_id, tool.name, arguments),
    ]
    yield from _answer(turn, step, chunks, "tool-calls", ToolCallBlock(call_id, tool.name, arguments))
    yield ToolCall(turn, step, call_id, tool.name, arguments, card)
    if tool.name != "read":
        yield PermissionAsked(turn, step, call_id, ("allow_once", "reject_once"))
        yield PermissionDecided(turn, step, call_id, True, "user", "allow_once")
    yield ToolStarted(turn, step, call_id)
    yield _result(turn, step, call_id, tool, card)
    yield StepEnd(turn, step)


def _body(tool: Tool, turn: int, step: int, path: str) -> tuple[CardItem, ...]:
    if tool.kind != "edit":
        return ()
    return (CardDiff(path, _code(f"{turn}.{step} old", 8), _code(f"{turn}.{step} new", 10)),)


def _result(turn: int, step: int, call_id: str, tool: Tool, card: Card) -> ToolResult:
    seen = _code(f"{turn}.{step}", READ_LINES)
    shown = {"edit": card.body, "execute": (CardOutput(seen),), "read": (CardCode(seen, "python"),)}
    words = "Edited." if tool.kind == "edit" else seen
    done = card.with_status("done", shown[tool.kind])
    ended = Exit(0) if tool.kind == "execute" else None
    return ToolResult(turn, step, call_id, (Text(words),), False, "ran", exit=ended, card=done)


def _call(index: int, call_id: str, name: str, arguments: str) -> list[Chunk]:
    size = -(-len(arguments) // ARGUMENTS)
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]
    first = ToolCallDelta(index, call_id, name, pieces[0])
    rest = [ToolCallDelta(index, "", "", piece) for piece in pieces[1:]]
    return [BlockStart(index, "tool-call"), first, *rest, BlockEnd(index)]


def _answer(
    turn: int, step: int, chunks: list[Chunk], finish: FinishKind, *calls: Content
) -> Iterator[LoggedFact]:
    for chunk in (*chunks, UsageChunk(USAGE), Finish(finish)):
        yield AssistantChunk(turn, step, 1, chunk)
    thought = "".join(chunk.text for chunk in chunks if isinstance(chunk, ReasoningDelta))
    said = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
    content: list[Content] = [Reasoning(thought)] if thought else []
    yield AssistantMessage(turn, step, 1, (*content, Text(said), *calls))
    yield UsageRecorded(turn, step, USAGE)


def _deltas(kind: str, deltas: int, index: int) -> list[Chunk]:
    delta = TextDelta if kind == "text" else ReasoningDelta
    words = (
        "so ",
        "the ",
        "module ",
        "reads ",
        "its ",
        "input ",
        "twice",
        ", ",
        "which ",
        "is ",
        "slow",
        ".\n",
    )
    said = [delta(index, words[at % len(words)]) for at in range(deltas)]
    return [BlockStart(index, "text" if kind == "text" else "reasoning"), *said, BlockEnd(index)]


def _code(name: str, lines: int) -> str:
    return "".join(f"    value_{at} = compute({name!r}, {at})  # as before\n" for at in range(lines))


async def store_it(store: JsonlStore, session_id: str, cwd: str, events: int) -> SessionLog:
    """Log the facts as the loop would, and store them."""
    times = count(1_780_000_000_000, 20)
    log, rules = SessionLog(clock=lambda: next(times)), Invariants()
    for fact in session(events):
        log.append(fact)
    rules.check_all(log)
    await store.create(SessionHeader(session_id, 1_780_000_000_000, cwd))
    await store.append(session_id, list(log.rows_since(0)), first_seq=0, durable=True)
    return log


def shown(log: SessionLog) -> dict[str, int]:
    """How much of what a replay shows."""
    chunks = [fact.chunk for fact in log if isinstance(fact, AssistantChunk)]
    return {
        "prompts": sum(isinstance(fact, UserMessage) for fact in log),
        "calls": sum(isinstance(fact, ToolCall) for fact in log),
        "said_chars": sum(len(chunk.text) for chunk in chunks if isinstance(chunk, TextDelta)),
        "thought_chars": sum(len(chunk.text) for chunk in chunks if isinstance(chunk, ReasoningDelta)),
    }


async def main(state: str, cwd: str, rows: Path, events: int) -> None:
    """Store both."""
    store = JsonlStore(state)
    await store_it(store, "short", cwd, SHORT_EVENTS)
    log = await store_it(store, "long", cwd, events)
    await store.aclose()
    with rows.open("wb") as file:
        for fact in log:
            file.write(orjson.dumps(fact_to_json(fact), option=orjson.OPT_APPEND_NEWLINE))
    told = {"short": "short", "long": "long", "events": log.next_seq, "shown": shown(log)}
    print(orjson.dumps(told).decode())


asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])))
