"""Moves or renames a file, a link or a directory; nothing is ever overwritten."""

from typing import Annotated

from pydantic import BaseModel, Field

from agent_loop.cards import Card, CardText, Location
from agent_loop.jsonvalue import clean_text
from agent_loop.messages import Text
from agent_loop.record import record
from agent_loop.tools.bounds import bounded_input
from agent_loop.tools.bundled.delete import Named, in_words, refuse_changed, signed, surveyed
from agent_loop.tools.bundled.paths import refuse_moved_name, resolve_name
from agent_loop.tools.failures import failed, stopped_before_acting
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolOutcome, ToolRefused


class MoveArguments(BaseModel):
    source: Annotated[str, Field(description="What moves; relative paths count from the working directory.")]
    target: Annotated[str, Field(description="Its new path, last name included; must not exist yet.")]


@record
class _Move:
    source: Named
    target: str


class Move:
    name = "move"
    description = (
        "Move or rename a file, a link (not what it leads to) or a directory. Folders on the way are made; "
        "what exists is never overwritten."
    )
    arguments = MoveArguments

    def parallel_safe(self, args: MoveArguments) -> bool:
        return False

    async def prepare(self, args: MoveArguments, ctx: ToolContext) -> Prepared:
        source, target = resolve_name(ctx, args.source), resolve_name(ctx, args.target)
        shown = [clean_text(ctx.workspace.roots.shown(real)) for real in (source, target)]
        if f"{target}/".startswith(f"{source}/"):
            raise ToolRefused(f"{shown[0]} cannot be moved into itself.", code="INVALID_ARGS")
        found = await surveyed(ctx, source)
        await _require_free(ctx, target, shown[1])

        title = " → ".join(shown)
        card = Card(
            kind="move",
            title=title,
            body=(CardText(in_words(found)),),
            locations=(Location(source), Location(target)),
            input=bounded_input(args.model_dump()),
        )
        return Prepared(
            card, Effect("move", (source, target)), _Move(Named(source, signed(found, shown[0])), target)
        )

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        move: _Move = prepared.state
        if changed := await refuse_changed(ctx, move.source, prepared.card.title):
            return changed
        if moved := refuse_moved_name(ctx, move.target):
            return moved
        if ctx.token.fired:
            return stopped_before_acting()
        try:
            await ctx.workspace.files.move(move.source.real, move.target)
        except FileExistsError as error:
            return failed(f"{error}; nothing was moved.", "EXISTS")
        return ToolOutcome(content=(Text(f"Moved {prepared.card.title}."),))


async def _require_free(ctx: ToolContext, target: str, shown: str) -> None:
    try:
        await ctx.workspace.files.survey(target)
    except FileNotFoundError:
        return
    except NotADirectoryError as error:
        raise ToolRefused(f"{shown} lies below a file.", code="INVALID_ARGS") from error
    raise ToolRefused(f"{shown} exists already; name another path, or delete it first.", code="EXISTS")
