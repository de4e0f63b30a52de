"""Runs a shell command to its end."""

from typing import Annotated

from pydantic import BaseModel, Field

from agent_loop.cards import Card, CardCode, CardOutput, CardText
from agent_loop.events.facts import Exit
from agent_loop.messages import Text
from agent_loop.record import replace
from agent_loop.tools.bounds import CONTENT_LIMIT_BYTES, bounded_input
from agent_loop.tools.bundled.paths import resolve_path
from agent_loop.tools.failures import disk_words, failed, stopped_before_acting
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolOutcome, ToolRefused
from agent_loop.workspace.commands import Command, CommandLost, CommandResult

DEFAULT_TIMEOUT_S = 120.0
LONGEST_TIMEOUT_S = 600.0
# The markers below the output come on top of it.
OUTPUT_LIMIT_BYTES = CONTENT_LIMIT_BYTES - 4_000
TITLE_LIMIT = 300


class RunCommandArguments(BaseModel):
    command: Annotated[str, Field(description="Line for a POSIX shell (/bin/sh -c); may have several lines.")]
    timeout_s: Annotated[
        float,
        Field(
            gt=0,
            allow_inf_nan=False,
            description=f"Seconds until the command is ended; at most {LONGEST_TIMEOUT_S:g}.",
        ),
    ] = DEFAULT_TIMEOUT_S


class RunCommand:
    name = "run_command"
    description = (
        "Run a shell command in the working directory and wait for its end. stdin is empty. Gives stdout "
        "and stderr as they came, then the exit code when it is not 0. Whatever the command leaves running "
        "in the background is ended with it."
    )
    arguments = RunCommandArguments

    def parallel_safe(self, args: RunCommandArguments) -> bool:
        return False

    async def prepare(self, args: RunCommandArguments, ctx: ToolContext) -> Prepared:
        if not args.command.strip() or "\0" in args.command:
            raise ToolRefused(
                "command must be a shell command, not empty and without NUL", code="INVALID_ARGS"
            )

        title = _title(args.command)
        cwd = resolve_path(ctx, ".")
        sandbox = ctx.workspace.sandbox
        whole = () if title == args.command.strip() else (CardCode(args.command, "sh"),)
        card = Card(
            kind="execute",
            title=title,
            body=whole if sandbox is None else (*whole, CardText(sandbox.words)),
            input=bounded_input(args.model_dump(exclude_unset=True)),
            terminal=cwd,
        )
        command = Command(args.command, cwd, min(args.timeout_s, LONGEST_TIMEOUT_S), OUTPUT_LIMIT_BYTES)
        return Prepared(card, Effect("execute", shell=args.command, cwd=cwd), command)

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        command: Command = prepared.state
        if ctx.token.fired:
            return stopped_before_acting()

        try:
            result = await ctx.workspace.commands.run(command, ctx.output, on_terminal=ctx.terminal)
        except CommandLost as error:
            return failed(f"{error}", "LOST")
        except OSError as error:
            return failed(f"the command could not be started: {disk_words(error)}", "NOT_STARTED")

        shown = CardOutput(result.output, truncated=result.omitted_bytes > 0)
        return ToolOutcome(
            content=(Text(_told(result, command.timeout_s)),),
            card=replace(prepared.card, body=(*prepared.card.body, shown)),
            exit=Exit(result.exit_code, result.signal, result.timed_out),
        )


def _title(command: str) -> str:
    """The exact command when it is one plain line, else its beginning; the card then shows it whole, too."""
    line, *more = command.strip().split("\n")
    line = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
    return f"{line[:TITLE_LIMIT]} …" if more or len(line) > TITLE_LIMIT else line


def _told(result: CommandResult, timeout_s: float) -> str:
    parts = [result.output.removesuffix("\n") or "(no output)"]
    if result.spill_path is not None:
        parts.append(f"[all of the output is in {result.spill_path}; look into it with run_command]")
    if result.timed_out:
        parts.append(f"[timed out after {timeout_s:g} s]")
    if result.signal is not None:
        parts.append(f"[killed by signal: {result.signal}]")
    elif result.exit_code:
        parts.append(f"[exit code: {result.exit_code}]")

    return "\n".join(parts)
