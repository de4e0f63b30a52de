"""Lists a directory."""

import json
from typing import Annotated

from pydantic import BaseModel, Field

from agent_loop.cards import Card, Location
from agent_loop.jsonvalue import clean_text
from agent_loop.messages import Text
from agent_loop.tools.bounds import bounded_input
from agent_loop.tools.bundled.paths import refuse_moved, resolve_path
from agent_loop.tools.failures import failed
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolOutcome
from agent_loop.workspace.files import Entry

ENTRIES_LIMIT = 1_000
_MARKS = {"directory": "/", "link": "@", "other": "?"}


class ListArguments(BaseModel):
    path: Annotated[str, Field(description="Directory to list; the working directory when left out.")] = "."


class ListDir:
    name = "list"
    description = (
        "List a directory, hidden names included: directories first, marked name/, links name@, special "
        "files name?, plain files with their size in bytes."
    )
    arguments = ListArguments

    def parallel_safe(self, args: ListArguments) -> bool:
        return True

    async def prepare(self, args: ListArguments, ctx: ToolContext) -> Prepared:
        real = resolve_path(ctx, args.path)
        card = Card(
            kind="read",
            title=clean_text(ctx.workspace.roots.shown(real)),
            locations=(Location(real),),
            input=bounded_input(args.model_dump(exclude_unset=True)),
        )
        return Prepared(card, Effect("read", (real,)), real)

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        real: str = prepared.state
        if moved := refuse_moved(ctx, real):
            return moved

        try:
            entries = await ctx.workspace.files.entries(real)
        except NotADirectoryError:
            return failed(f"{prepared.card.title} is not a directory; use read.", "NOT_DIRECTORY")

        return ToolOutcome(content=(Text(_shown(entries)),))


def _shown(entries: list[Entry]) -> str:
    if not entries:
        return "(empty directory)"

    ordered = sorted(entries, key=lambda entry: entry.kind != "directory")
    lines = [_line(entry) for entry in ordered[:ENTRIES_LIMIT]]
    if len(ordered) > ENTRIES_LIMIT:
        lines.append(
            f"[{ENTRIES_LIMIT:,} of {len(ordered):,} entries; list a directory below, or use run_command]"
        )

    return "\n".join(lines)


def _line(entry: Entry) -> str:
    name = clean_text(entry.name)
    # A line break in a name would look like two names.
    name = name if name.isprintable() else json.dumps(name)
    mark = _MARKS.get(entry.kind)
    return f"{name}{mark}" if mark else f"{name}  {entry.size_bytes}"
