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
from agent_loop.tools.bundled.seen import note_seen, require_seen
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
    preimage: bytes


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
        return Prepared(card, Effect("write", (real,)), _Change(real, edited, content))

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        change: _Change = prepared.state
        files = ctx.workspace.files
        if moved := refuse_moved(ctx, change.real):
            return moved

        try:
            unchanged = await files.holds(change.real, change.preimage)
        except (FileNotFoundError, IsADirectoryError):
            unchanged = False
        if not unchanged:
            return failed(
                f"{prepared.card.title} changed since the call was looked at, and was not written. "
                "Read it, then edit again.",
                "CHANGED",
            )

        if ctx.token.fired:
            return stopped_before_acting()
        note = await files.write(change.real, *change.edited.parts)
        if change.edited.size <= READABLE_BYTES:
            note_seen(ctx, change.real, change.edited.content)

        count, line = change.edited.count, change.edited.line
        places = "1 place" if count == 1 else f"{count:,} places"
        words = f"Changed {prepared.card.title} in {places}, from line {line:,} on. {note}"
        return ToolOutcome(content=(Text(words.rstrip()),))


def _edited(content: bytes, edits: list[Edit]) -> Edited:
    """UTF-16 is edited as the UTF-8 it stands for; everything else as the bytes it is."""
    encoding = _UTF16.get(content[:2])
    if encoding is None:
        return apply_edits(content, edits)
    try:
        edited = apply_edits(content.decode(encoding).encode(), edits)
    except UnicodeError:
        raise NoMatch("the file says it is UTF-16 and is not, so it cannot be edited.", "BINARY") from None
    middle = edited.content.decode().encode(encoding)
    return Edited(content, 0, 0, middle, edited.line, edited.count)


def _shown(path: str, old: bytes, edited: Edited) -> CardItem:
    """The change as a diff: of the whole file, or of the lines around it when the file is big."""
    if max(len(old), edited.size) > WHOLE_DIFF_BYTES and old[:2] not in _UTF16:
        pieces = _around(old, edited)
    else:
        pieces = (old, edited.content)
    if sum(map(len, pieces)) > 2 * WHOLE_DIFF_BYTES:
        return CardText(f"Changes {edited.count:,} places, from line {edited.line:,} on; too much to show.")
    try:
        return CardDiff(path, _text(pieces[0]), _text(pieces[1]))
    except UnicodeError:
        return CardText(
            f"Changes {edited.count:,} places, from line {edited.line:,} on, of a file that is no text."
        )


def _around(old: bytes, edited: Edited) -> tuple[bytes, bytes]:
    """What differs of both, with whole lines and a few more around it."""
    end = len(old) - edited.tail
    was, now = old[edited.head : end], edited.middle
    head = _shared(was, now, from_end=False)
    tail = edited.tail + min(_shared(was, now, from_end=True), min(len(was), len(now)) - head)
    head += edited.head
    for _ in range(CONTEXT_LINES + 1):
        head = max(old.rfind(b"\n", 0, head), 0)
    first = head + 1 if head else 0
    last = len(old) - tail
    for _ in range(CONTEXT_LINES + 1):
        at = old.find(b"\n", last)
        last = len(old) if at < 0 else at + 1
    # The new text from where either begins to where either ends, then without what is too much.
    begin, stop = min(first, edited.head), max(last, end)
    new = old[begin : edited.head] + now + old[end:stop]
    return old[first:last], new[first - begin : len(new) - (stop - last)]


def _shared(one: bytes, other: bytes, *, from_end: bool) -> int:
    """How many bytes both begin, or end, with; by halving, because comparing slices is what bytes do fast."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if from_end:
            same = one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]
        else:
            same = one[low:middle] == other[low:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low


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
