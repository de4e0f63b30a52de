"""Finds files by their names."""

from typing import Annotated

from pydantic import BaseModel, Field

from agent_loop.cards import Card, Location
from agent_loop.jsonvalue import clean_text
from agent_loop.messages import Text
from agent_loop.record import record
from agent_loop.tools.bounds import bounded_input
from agent_loop.tools.bundled.paths import refuse_moved, resolve_path
from agent_loop.tools.bundled.ripgrep import name_flags, run_ripgrep
from agent_loop.tools.failures import failed
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolOutcome, ToolRefused

FILES_LIMIT = 500


class FindArguments(BaseModel):
    glob: Annotated[str, Field(min_length=1, description="Names to find, e.g. *.py or src/**/*.css.")]
    path: Annotated[str, Field(description="Directory to look below; by default the working directory.")] = (
        "."
    )
    hidden: Annotated[bool, Field(description="Look into hidden files and folders too.")] = False


@record
class _Find:
    real: str
    arguments: list[str]


class Find:
    name = "find"
    description = (
        f"Find files by name, in order of their paths, at most {FILES_LIMIT}. A glob without a slash fits "
        "names at any depth; what git ignores is skipped unless the glob says its name."
    )
    arguments = FindArguments

    def parallel_safe(self, args: FindArguments) -> bool:
        return True

    async def prepare(self, args: FindArguments, ctx: ToolContext) -> Prepared:
        real = resolve_path(ctx, args.path)
        shown = clean_text(ctx.workspace.roots.shown(real))
        card = Card(
            kind="search",
            title=clean_text(args.glob) + ("" if shown == "." else f" in {shown}"),
            locations=(Location(real),),
            input=bounded_input(args.model_dump(exclude_unset=True)),
        )
        flags = ["--files", "--sort=path", *name_flags(args.glob, hidden=args.hidden)]
        return Prepared(card, Effect("read", (real,)), _Find(real, flags))

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        find: _Find = prepared.state
        if moved := refuse_moved(ctx, find.real):
            return moved
        try:
            found = await run_ripgrep(ctx, find.arguments, find.real, FILES_LIMIT)
        except ToolRefused as refused:
            return failed(str(refused), refused.code)
        if not found.lines:
            return ToolOutcome(content=(Text("No such files."),))
        lines = [*found.lines]
        if found.more:
            lines.append(f"[only the first {len(lines)}; narrow the glob or the path]")
        return ToolOutcome(content=(Text("\n".join(lines)),))
