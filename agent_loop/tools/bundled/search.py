"""Finds text in files."""

import os
from collections.abc import Sequence
from typing import Annotated

from anyio.to_thread import run_sync
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

_MATCH, _BESIDE = "\N{SYMBOL FOR UNIT SEPARATOR}:", "\N{SYMBOL FOR UNIT SEPARATOR}-"
LINES_LIMIT = 250
LINE_CHARS = 300


class SearchArguments(BaseModel):
    pattern: Annotated[str, Field(min_length=1, description="Regular expression (Rust's), line by line.")]
    path: Annotated[str, Field(description="Where to look; by default the working directory.")] = "."
    glob: Annotated[str | None, Field(description="Only files of such names, e.g. *.py or src/**.")] = None
    literal: Annotated[bool, Field(description="Take the pattern as plain text.")] = False
    ignore_case: Annotated[bool, Field(description="Upper and lower case alike.")] = False
    context: Annotated[int, Field(ge=0, le=20, description="Lines to show around each match.")] = 0
    hidden: Annotated[bool, Field(description="Look into hidden files and folders too.")] = False


@record
class _Search:
    real: str
    arguments: list[str]


class Search:
    name = "search"
    description = (
        "Search file contents with ripgrep. Gives path:line:text; skips what git ignores and binary files, "
        f"and stops after {LINES_LIMIT} lines."
    )
    arguments = SearchArguments

    def parallel_safe(self, args: SearchArguments) -> bool:
        return True

    async def prepare(self, args: SearchArguments, ctx: ToolContext) -> Prepared:
        real = resolve_path(ctx, args.path)
        shown = clean_text(ctx.workspace.roots.shown(real))
        card = Card(
            kind="search",
            title=clean_text(" ".join(args.pattern.split())) + ("" if shown == "." else f" in {shown}"),
            locations=(Location(real),),
            input=bounded_input(args.model_dump(exclude_unset=True)),
        )
        return Prepared(card, Effect("read", (real,)), _Search(real, _flags(args)))

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        search: _Search = prepared.state
        if moved := refuse_moved(ctx, search.real):
            return moved
        try:
            found = await run_ripgrep(ctx, search.arguments, search.real, LINES_LIMIT)
        except ToolRefused as refused:
            return failed(str(refused), refused.code)
        if not found.lines:
            return ToolOutcome(content=(Text("No matches."),))
        lines = await run_sync(_visible, found.lines, ctx)
        first = len(found.lines)
        if len(lines) < first:
            lines.append(f"[{first - len(lines)} lines left out, of files that a rule keeps from you]")
        if found.more:
            lines.append(f"[only the first {first} lines; narrow the pattern, the path or the glob]")
        return ToolOutcome(content=(Text("\n".join(lines)),))


def _visible(lines: Sequence[str], ctx: ToolContext) -> list[str]:
    """The lines of files the model may see, as they are shown to it."""
    base, hidden = os.path.realpath(ctx.workspace.roots.cwd), ctx.hidden
    seen: dict[str, bool] = {}
    shown = []
    for line in lines:
        mark = _MATCH if _MATCH in line else _BESIDE
        path, found, _ = line.partition(mark)
        if found and hidden is not None and path not in seen:
            seen[path] = hidden(os.path.realpath(os.path.join(base, path)))
        if not seen.get(path, False):
            shown.append(line.replace(mark, mark[-1], 2))
    return shown


def _flags(args: SearchArguments) -> list[str]:
    flags = ["--line-number", "--no-heading", "--with-filename", f"--max-columns={LINE_CHARS}"]
    flags.append("--max-columns-preview")
    # So that a path can be told from what follows it.
    flags += [f"--field-match-separator={_MATCH}", f"--field-context-separator={_BESIDE}"]
    if args.literal:
        flags.append("--fixed-strings")
    if args.ignore_case:
        flags.append("--ignore-case")
    if args.context:
        flags.append(f"--context={args.context}")
    return [*flags, *name_flags(args.glob, hidden=args.hidden), f"--regexp={args.pattern}"]
