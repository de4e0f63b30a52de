"""Deletes a file, a link or a whole directory, after saying what goes."""

from typing import Annotated

from pydantic import BaseModel, Field

from agent_loop.cards import Card, CardText, Location
from agent_loop.jsonvalue import clean_text
from agent_loop.messages import Text
from agent_loop.record import record
from agent_loop.tools.bounds import bounded_input
from agent_loop.tools.bundled.paths import refuse_moved_name, resolve_name
from agent_loop.tools.failures import failed, stopped_before_acting
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolOutcome, ToolRefused
from agent_loop.workspace.files import Survey


class DeleteArguments(BaseModel):
    path: Annotated[str, Field(description="What goes; relative paths count from the working directory.")]


@record
class Named:
    """A name and what it stood for when it was looked at."""

    real: str
    signature: str


class Delete:
    name = "delete"
    description = (
        "Delete a file, a link (not what it leads to) or a directory with all below it. It stays gone."
    )
    arguments = DeleteArguments

    def parallel_safe(self, args: DeleteArguments) -> bool:
        return False

    async def prepare(self, args: DeleteArguments, ctx: ToolContext) -> Prepared:
        real = resolve_name(ctx, args.path)
        found = await surveyed(ctx, real)
        card = Card(
            kind="delete",
            title=clean_text(ctx.workspace.roots.shown(real)),
            body=(CardText(in_words(found)),),
            locations=(Location(real),),
            input=bounded_input(args.model_dump()),
        )
        return Prepared(card, Effect("delete", (real,)), Named(real, signed(found, card.title)))

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        named: Named = prepared.state
        if changed := await refuse_changed(ctx, named, prepared.card.title):
            return changed
        if ctx.token.fired:
            return stopped_before_acting()
        await ctx.workspace.files.delete(named.real)
        return ToolOutcome(content=(Text(f"Deleted {prepared.card.title}."),))


async def surveyed(ctx: ToolContext, real: str) -> Survey:
    """What is there.

    Raises:
        ToolRefused: Nothing is.
    """
    try:
        return await ctx.workspace.files.survey(real)
    except FileNotFoundError as error:
        shown = clean_text(ctx.workspace.roots.shown(real))
        raise ToolRefused(f"{shown} does not exist.", code="NOT_FOUND") from error


def signed(found: Survey, shown: str) -> str:
    """The signature of what was found; ToolRefused when there is too much to vouch for."""
    if found.signature is None:
        raise ToolRefused(f"{shown} holds too much for one call; use run_command.", code="TOO_LARGE")
    return found.signature


async def refuse_changed(ctx: ToolContext, named: Named, shown: str) -> ToolOutcome | None:
    """An outcome when what was approved is not what is there any more."""
    if moved := refuse_moved_name(ctx, named.real):
        return moved
    try:
        unchanged = (await ctx.workspace.files.survey(named.real)).signature == named.signature
    except FileNotFoundError:
        unchanged = False
    if unchanged:
        return None
    return failed(f"{shown} changed since the call was looked at, and was left alone; look again.", "CHANGED")


def in_words(found: Survey) -> str:
    """What it is and how much, for whoever decides."""
    if found.kind != "directory":
        return f"A {found.kind} of {found.size_bytes:,} bytes."
    if not found.files:
        return "A directory without files."
    files = "1 file" if found.files == 1 else f"{found.files:,} files"
    return f"A directory with {files}, {found.size_bytes:,} bytes in all."
