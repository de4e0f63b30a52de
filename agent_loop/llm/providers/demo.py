"""A demonstration without a model: the same short tour of real tools, whatever is asked.

Offline and deterministic. Where the tour stands is read from the conversation alone, so it survives a
restart, goes on after a refusal and begins anew with every prompt.
"""

import re
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from pathlib import PurePosixPath

import orjson
from anyio.lowlevel import checkpoint

from agent_loop.chunks import Chunk, Finish, ReasoningDelta, TextDelta, ToolCallDelta
from agent_loop.llm.provider import ModelRequest
from agent_loop.messages import Json, Message, ToolCallBlock, ToolResultBlock, text_of
from agent_loop.record import record

TOOLS = ("list", "read", "write", "run_command")

GREETING = (
    "This is a scripted demonstration, not a language model: I take the same short tour whatever you ask. "
    "First I look around.\n"
)
PROGRAM = 'print("Hello from the demonstration.")\n'

_TEXT_SUFFIXES = {
    ".md",
    ".txt",
    ".rst",
    ".py",
    ".toml",
    ".json",
    ".js",
    ".ts",
    ".html",
    ".css",
    ".yml",
    ".yaml",
}
# How `list` shows a plain file: the name, two blanks, the size.
_SIZE = re.compile(r"  \d+$")
_PIECE = re.compile(r"\S+\s*|\s+")


@record
class Station:
    """One stop of the tour: what is said, and the call that follows."""

    tool: str
    thought: str
    text: str
    arguments: Json


@record
class Call:
    """A call the tour has made; `result` is None when none is known."""

    tool: str
    arguments: str
    result: ToolResultBlock | None


class Demo:
    """The demonstration as a provider; any model name will do."""

    def __init__(self, name: str = "demo") -> None:
        self.name = name

    async def load(self) -> None:
        """Nothing to load."""

    async def models(self) -> tuple[str, ...]:
        """It has no list: it answers to any name."""
        return ()

    async def aclose(self) -> None:
        """Nothing to close."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """The next stop of the tour, in small pieces."""
        for chunk in answer(request):
            await checkpoint()
            yield chunk


def answer(request: ModelRequest) -> Iterator[Chunk]:
    """The chunks of the next stop."""
    offered = {tool.name for tool in request.tools}

    if missing := [name for name in TOOLS if name not in offered]:
        yield from _deltas(
            TextDelta, 0, f"{GREETING}But the tools {', '.join(missing)} are not there, so I stop.\n"
        )
        yield Finish("stop")
        return

    calls = tour_so_far(request.messages)
    station = next_station(calls)

    if station is None:
        yield from _deltas(TextDelta, 0, summary(calls))
        yield Finish("stop")
        return

    yield from _deltas(ReasoningDelta, 0, station.thought)
    yield from _deltas(TextDelta, 1, station.text)

    # Numbered through the session, so that no id is used twice.
    number = 1 + sum(
        isinstance(block, ToolCallBlock) for message in request.messages for block in message.content
    )
    yield ToolCallDelta(2, f"demo-{number}", station.tool, "")
    yield from (
        ToolCallDelta(2, "", "", piece) for piece in _PIECE.findall(orjson.dumps(station.arguments).decode())
    )
    yield Finish("tool-calls")


def tour_so_far(messages: Sequence[Message]) -> list[Call]:
    """The calls made since the person last said something, each with its result."""
    asked = max((at for at, message in enumerate(messages) if _is_prompt(message)), default=-1)
    blocks = [block for message in messages[asked + 1 :] for block in message.content]
    results = {block.call_id: block for block in blocks if isinstance(block, ToolResultBlock)}

    return [
        Call(block.name, block.arguments, results.get(block.id))
        for block in blocks
        if isinstance(block, ToolCallBlock)
    ]


def next_station(calls: Sequence[Call]) -> Station | None:
    """Where the tour goes from here; None at its end."""
    done = {call.tool for call in calls}

    if "list" not in done:
        return Station("list", "A tour begins with a look around.", GREETING, {})

    if "read" not in done and "write" not in done and (path := _readable(calls)):
        return Station("read", f"{path} looks like text.", f"Next I read {path}.\n", {"path": path})

    if "write" not in done:
        arguments = {"path": "hello.py", "content": PROGRAM}
        return Station(
            "write", "A small program shows how writing goes.", "Now I write a program.\n", arguments
        )

    if "run_command" not in done:
        arguments = {"command": "python3 hello.py"}
        return Station("run_command", "What was written can be run.", "And I run it.\n", arguments)

    return None


def summary(calls: Sequence[Call]) -> str:
    """What was done, and what came of it, also when that was nothing."""
    lines = [f"- {_story(call)}\n" for call in calls]
    return "".join(
        ["The tour is over. This is what happened:\n\n", *lines, "\nAnd all of it without a model.\n"]
    )


def _story(call: Call) -> str:
    what = f"`{call.tool} {call.arguments}`" if call.tool != "write" else "`write hello.py`"

    if call.result is None:
        return f"{what}: no result came back"

    first = _first_line(text_of(call.result.content))

    if call.result.is_error:
        return f"{what}: did not work ({first})"

    return f"{what}: {first}"


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no output")
    return line if len(line) <= 120 else f"{line[:119]}…"


def _readable(calls: Sequence[Call]) -> str | None:
    """The first text file that was listed, README.md before all others."""
    listed = [
        _SIZE.sub("", line)
        for call in calls
        if call.tool == "list" and call.result is not None and not call.result.is_error
        for line in text_of(call.result.content).splitlines()
    ]
    files = [
        line for line in listed if PurePosixPath(line).suffix in _TEXT_SUFFIXES and not line.endswith("/")
    ]

    return "README.md" if "README.md" in files else next(iter(files), None)


def _is_prompt(message: Message) -> bool:
    """Whether the person speaks: what is put into a running turn is tagged, and does not begin a new tour."""
    text = text_of(message.content)
    return message.role == "user" and bool(text) and not text.startswith(("<steering ", "<context "))


def _deltas(kind: Callable[[int, str], Chunk], index: int, text: str) -> Iterator[Chunk]:
    for piece in _PIECE.findall(text):
        yield kind(index, piece)
