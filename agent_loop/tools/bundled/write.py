"""Writes a whole file, after showing what that changes."""

from typing import Annotated

from pydantic import BaseModel, Field

from agent_loop.cards import Card, CardDiff, CardItem, CardText, Location
from agent_loop.jsonvalue import clean_text
from agent_loop.messages import Text
from agent_loop.record import record
from agent_loop.tools.bounds import bounded_input
from agent_loop.tools.bundled.paths import refuse_moved, resolve_path
from agent_loop.tools.bundled.seen import fingerprint, note_seen
from agent_loop.tools.failures import failed, stopped_before_acting
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolOutcome, ToolRefused
from agent_loop.workspace.files import FileAccess, FileTooLarge

FILE_LIMIT_BYTES = 10_000_000
DIFF_LIMIT_BYTES = 1_000_000


class WriteArguments(BaseModel):
    path: Annotated[str, Field(description="File to write; relative paths count from the working directory.")]
    content: Annotated[str, Field(description="All the file is to hold.")]


@record
class _Change:
    real: str
    content: bytes
    preimage: str | None


class Write:
    name = "write"
    description = (
        "Write a whole text file: create it, folders included, or replace all it holds. To change part of a "
        "file, use edit."
    )
    arguments = WriteArguments

    def parallel_safe(self, args: WriteArguments) -> bool:
        return False

    async def prepare(self, args: WriteArguments, ctx: ToolContext) -> Prepared:
        real = resolve_path(ctx, args.path)
        shown = clean_text(ctx.workspace.roots.shown(real))
        if args.path.endswith("/"):
            raise ToolRefused(f"{shown} names a directory; name a file.", code="IS_DIRECTORY")

        try:
            old = await _content(ctx.workspace.files, real)
        except IsADirectoryError as error:
            raise ToolRefused(f"{shown} is a directory; name a file.", code="IS_DIRECTORY") from error
        except FileTooLarge as error:
            raise ToolRefused(f"{error}. Replace it with run_command.", code="TOO_LARGE") from error

        card = Card(
            kind="edit",
            title=shown,
            body=(_change_shown(real, old, args.content),),
            locations=(Location(real),),
            input=bounded_input(args.model_dump()),
        )
        change = _Change(real, args.content.encode(), _hash(old))
        return Prepared(card, Effect("write", (real,)), change)

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        change: _Change = prepared.state
        files = ctx.workspace.files
        if moved := refuse_moved(ctx, change.real):
            return moved

        try:
            unchanged = _hash(await _content(files, change.real)) == change.preimage
        except (IsADirectoryError, FileTooLarge):
            unchanged = False
        if not unchanged:
            return failed(
                f"{prepared.card.title} changed since the call was looked at, and was not written. "
                "Read it, then write again.",
                "CHANGED",
            )

        if ctx.token.fired:
            return stopped_before_acting()
        note = await files.write(change.real, change.content)
        note_seen(ctx, change.real, change.content)

        done = "Created" if change.preimage is None else "Replaced"
        words = f"{done} {prepared.card.title}: {len(change.content):,} bytes written. {note}"
        return ToolOutcome(content=(Text(words.rstrip()),))


async def _content(files: FileAccess, path: str) -> bytes | None:
    try:
        return await files.read(path, limit_bytes=FILE_LIMIT_BYTES)
    except FileNotFoundError:
        return None


def _hash(content: bytes | None) -> str | None:
    return None if content is None else fingerprint(content)


def _change_shown(path: str, old: bytes | None, new: str) -> CardItem:
    new_bytes = len(new.encode())
    if old is None:
        return CardDiff(path, None, new)
    if len(old) + new_bytes > DIFF_LIMIT_BYTES:
        return CardText(f"Replaces {len(old):,} bytes by {new_bytes:,}; too much to show.")

    try:
        return CardDiff(path, old.decode(), new)
    except UnicodeDecodeError:
        return CardText(f"Replaces {len(old):,} bytes that are no text by {new_bytes:,} bytes of text.")
