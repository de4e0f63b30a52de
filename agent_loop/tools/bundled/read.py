"""Reads a window of a text file, or a picture."""

import codecs
import io
from base64 import b64encode
from typing import Annotated

from anyio.to_thread import run_sync
from pydantic import BaseModel, Field

from agent_loop.cards import Card, Location
from agent_loop.jsonvalue import clean_text
from agent_loop.messages import Image, Text
from agent_loop.pictures import PICTURE_LIMIT_BYTES, picture_kind
from agent_loop.record import record
from agent_loop.tools.bounds import bounded_input
from agent_loop.tools.bundled.paths import refuse_moved, resolve_path
from agent_loop.tools.bundled.seen import note_seen
from agent_loop.tools.failures import failed
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolOutcome, ToolRefused
from agent_loop.workspace.files import FileTooLarge

FILE_LIMIT_BYTES = 10_000_000
WINDOW_LINES = 2_000
WINDOW_BYTES = 50_000
_LOOK_BYTES = 8_192


class ReadArguments(BaseModel):
    path: Annotated[str, Field(description="File to read; relative paths count from the working directory.")]
    line: Annotated[int, Field(ge=1, description="First line to read, counted from 1.")] = 1
    limit: Annotated[int, Field(ge=1, description="How many lines to read.")] = WINDOW_LINES


@record
class _Window:
    real: str
    line: int
    limit: int


class Read:
    name = "read"
    description = (
        "Read a text file, or look at a picture. "
        f"Gives up to {WINDOW_LINES:,} lines or {WINDOW_BYTES:,} bytes and says when there is more; "
        "ask for the rest with `line`."
    )
    arguments = ReadArguments

    def parallel_safe(self, args: ReadArguments) -> bool:
        return True

    async def prepare(self, args: ReadArguments, ctx: ToolContext) -> Prepared:
        real = resolve_path(ctx, args.path)
        card = Card(
            kind="read",
            title=clean_text(ctx.workspace.roots.shown(real)),
            locations=(Location(real, args.line if "line" in args.model_fields_set else None),),
            input=bounded_input(args.model_dump(exclude_unset=True)),
        )
        return Prepared(card, Effect("read", (real,)), _Window(real, args.line, args.limit))

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        window: _Window = prepared.state
        if moved := refuse_moved(ctx, window.real):
            return moved

        try:
            content = await ctx.workspace.files.read(window.real, limit_bytes=FILE_LIMIT_BYTES)
        except IsADirectoryError:
            return failed(f"{prepared.card.title} is a directory; use list.", "IS_DIRECTORY")
        except FileTooLarge as error:
            return failed(f"{error}. Look into it with run_command (head, sed, grep).", "TOO_LARGE")

        if kind := picture_kind(content):
            return _picture(content, kind, prepared.card.title)
        try:
            shown = await run_sync(_shown, content, window.line, window.limit)
        except ToolRefused as refused:
            return failed(f"{prepared.card.title} {refused}", refused.code)
        note_seen(ctx, window.real, content)
        return ToolOutcome(content=(Text(shown),))


def _picture(content: bytes, kind: str, title: str) -> ToolOutcome:
    if len(content) > PICTURE_LIMIT_BYTES:
        words = (
            f"{title} is a picture of {len(content):,} bytes; {PICTURE_LIMIT_BYTES:,} can be shown to you."
        )
        return failed(words, "TOO_LARGE")
    picture = Image(b64encode(content).decode(), kind)
    return ToolOutcome(content=(Text(f"{title}: {kind}, {len(content):,} bytes"), picture))


def _shown(content: bytes, line: int, limit: int) -> str:
    """The window as text, then notes on what is not in it."""
    text, notes = _decoded(content)
    if not text:
        return "(empty file)"

    lines = list(io.StringIO(text, newline="\n"))
    if line > len(lines):
        raise ToolRefused(f"has {len(lines):,} lines; there is no line {line:,}.", code="PAST_END")

    chosen, size = [], 0
    for candidate in lines[line - 1 : line - 1 + limit]:
        size += len(candidate.encode())
        if size > WINDOW_BYTES:
            break
        chosen.append(candidate)

    if not chosen:
        whole = lines[line - 1].encode()
        chosen = [whole[:WINDOW_BYTES].decode(errors="ignore")]
        notes.append(f"line {line:,} has {len(whole):,} bytes; only its first {WINDOW_BYTES:,} are above")

    last = line - 1 + len(chosen)
    if last < len(lines):
        notes.append(f"lines {line:,} to {last:,} of {len(lines):,}; go on with line={last + 1}")

    shown = "".join(chosen)
    if notes and not shown.endswith("\n"):
        shown += "\n"

    return shown + "\n".join(f"[{note}]" for note in notes)


def _decoded(content: bytes) -> tuple[str, list[str]]:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace"), [
            "the file is UTF-16; write makes it UTF-8, edit keeps it"
        ]
    if b"\0" in content[:_LOOK_BYTES]:
        raise ToolRefused(f"is a binary file of {len(content):,} bytes, not text.", code="BINARY")

    try:
        return content.decode(), []
    except UnicodeDecodeError:
        return content.decode("latin-1"), [
            "the file is not UTF-8 and was read as Latin-1; write makes it UTF-8, edit keeps it"
        ]
