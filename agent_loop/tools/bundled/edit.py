"""Changes parts of a text file, exactly, after showing what that changes."""

import codecs
from typing import Annotated, Final

from anyio.to_thread import run_sync
from pydantic import BaseModel, Field

from agent_loop.cards import Card, CardDiff, CardItem, CardText, Location
from agent_loop.jsonvalue import clean_text
from agent_loop.messages import Text
from agent_loop.record import record
from agent_loop.tools.bounds import bounded_input
from agent_loop.tools.bundled.edits import Edit, Edited, NoMatch, apply_edits
from agent_loop.tools.bundled.paths import refuse_moved, resolve_path
from agent_loop.tools.bundled.read import FILE_LIMIT_BYTES as READABLE_BYTES
from agent_loop.tools.bundled.seen import fingerprint, note_seen, require_seen
from agent_loop.tools.failures import failed, stopped_before_acting
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolOutcome, ToolRefused
from agent_loop.workspace.files import FileTooLarge

FILE_LIMIT_BYTES: Final = 100_000_000
WHOLE_DIFF_BYTES: Final = 16_000
"""A bigger file is shown by the lines around the change; its whole would not fit an editor's card."""
CONTEXT_LINES: Final = 3

_UTF16: Final = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class OneEdit(BaseModel):
    old: Annotated[
        str, Field(description="Text to replace, exactly as the file has it, indentation included.")
    ]
    new: Annotated[str, Field(description="Text to put in its place; empty to delete it.")]
    replace_all: Annotated[bool, Field(description="Replace every occurrence, not the only one.")] = False


class EditArguments(BaseModel):
    path: Annotated[
        str, Field(description="File to change; relative paths count from the working directory.")
    ]
    edits: Annotated[
        list[OneEdit],
        Field(min_length=1, description="Changes, made one after the other; all of them or none."),
    ]


@record
class _Change:
    real: str
    edited: Edited
    preimage: str


class EditFile:
    name = "edit"
    description = (
        "Replace parts of a text file you have read. Each `old` must be in the file exactly once, unless "
        "replace_all is set; give a few lines around the place to make it so. Line endings, and all that you "
        "do not name, stay as they are."
    )
    arguments = EditArguments

    def parallel_safe(self, args: EditArguments) -> bool:
        return False

    async def prepare(self, args: EditArguments, ctx: ToolContext) -> Prepared:
        real = resolve_path(ctx, args.path)
        shown = clean_text(ctx.workspace.roots.shown(real))
        try:
            content = await ctx.workspace.files.read(real, limit_bytes=FILE_LIMIT_BYTES)
        except FileNotFoundError as error:
            raise ToolRefused(f"{shown} does not exist; use write to create it.", code="NOT_FOUND") from error
        except IsADirectoryError as error:
            raise ToolRefused(f"{shown} is a directory; name a file.", code="IS_DIRECTORY") from error
        except FileTooLarge as error:
            raise ToolRefused(f"{error}. Change it with run_command.", code="TOO_LARGE") from error

        # What `read` refuses for its size cannot have been read; its exact words then come from a search.
        if len(content) <= READABLE_BYTES:
            require_seen(ctx, real, shown, content)
        edits = [Edit(edit.old, edit.new, edit.replace_all) for edit in args.edits]
        try:
            edited = await run_sync(_edited, content, edits)
        except NoMatch as refused:
            raise ToolRefused(f"{shown}: {refused}", code=refused.code) from None

        card = Card(
            kind="edit",
            title=shown,
            body=(await run_sync(_shown, real, content, edited),),
            locations=(Location(real, edited.line),),
            input=bounded_input(args.model_dump(exclude_unset=True)),
        )
        change = _Change(real, edited, await run_sync(fingerprint, content))
        return Prepared(card, Effect("write", (real,)), change)

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        change: _Change = prepared.state
        files = ctx.workspace.files
        if moved := refuse_moved(ctx, change.real):
            return moved

        try:
            now = await files.read(change.real, limit_bytes=FILE_LIMIT_BYTES)
            unchanged = await run_sync(fingerprint, now) == change.preimage
        except (FileNotFoundError, IsADirectoryError, FileTooLarge):
            unchanged = False
        if not unchanged:
            return failed(
                f"{prepared.card.title} changed since the call was looked at, and was not written. "
                "Read it, then edit again.",
                "CHANGED",
            )

        if ctx.token.fired:
            return stopped_before_acting()
        await files.write(change.real, change.edited.content)
        note_seen(ctx, change.real, change.edited.content)

        count, line = change.edited.count, change.edited.line
        places = "1 place" if count == 1 else f"{count:,} places"
        return ToolOutcome(
            content=(Text(f"Changed {prepared.card.title} in {places}, from line {line:,} on."),)
        )


def _edited(content: bytes, edits: list[Edit]) -> Edited:
    """UTF-16 is edited as the UTF-8 it stands for; everything else as the bytes it is."""
    encoding = _UTF16.get(content[:2])
    if encoding is None:
        return apply_edits(content, edits)
    try:
        edited = apply_edits(content.decode(encoding).encode(), edits)
    except UnicodeError:
        raise NoMatch("the file says it is UTF-16 and is not, so it cannot be edited.", "BINARY") from None
    return Edited(edited.content.decode().encode(encoding), edited.line, edited.count)


def _shown(path: str, old: bytes, edited: Edited) -> CardItem:
    """The change as a diff: of the whole file, or of the lines around it when the file is big."""
    try:
        before, after = _text(old), _text(edited.content)
    except UnicodeError:
        return CardText(
            f"Changes {edited.count:,} places, from line {edited.line:,} on, of a file that is no text."
        )
    if max(len(old), len(edited.content)) <= WHOLE_DIFF_BYTES:
        return CardDiff(path, before, after)

    olds, news = before.splitlines(keepends=True), after.splitlines(keepends=True)
    head = _common(olds, news)
    tail = min(_common(olds[::-1], news[::-1]), min(len(olds), len(news)) - head)
    first = max(head - CONTEXT_LINES, 0)
    last = max(tail - CONTEXT_LINES, 0)
    pieces = ["".join(lines[first : len(lines) - last]) for lines in (olds, news)]
    if sum(map(len, pieces)) > 2 * WHOLE_DIFF_BYTES:
        return CardText(f"Changes {edited.count:,} places, from line {edited.line:,} on; too much to show.")
    return CardDiff(path, *pieces)


def _text(content: bytes) -> str:
    encoding = _UTF16.get(content[:2])
    if encoding is not None:
        return content.decode(encoding)
    try:
        return content.decode()
    except UnicodeDecodeError:
        if b"\0" in content:
            raise
        return content.decode("latin-1")


def _common(one: list[str], other: list[str]) -> int:
    return next(
        (at for at, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its),
        min(len(one), len(other)),
    )
