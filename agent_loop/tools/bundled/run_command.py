"""Runs a shell command to its end."""

import math
from typing import Annotated

from pydantic import BaseModel, Field

from agent_loop.cards import Card, CardCode, CardItem, CardOutput, CardText
from agent_loop.events.facts import Exit
from agent_loop.messages import Text
from agent_loop.record import replace
from agent_loop.tools.bounds import CONTENT_LIMIT_BYTES, bounded_input
from agent_loop.tools.bundled.paths import resolve_path
from agent_loop.tools.failures import disk_words, failed, stopped_before_acting
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolOutcome, ToolRefused
from agent_loop.workspace.commands import Command, CommandLost, CommandResult
from agent_loop.workspace.jobs import TooManyJobs

DEFAULT_TIMEOUT_S = 120.0
LONGEST_TIMEOUT_S = 600.0
# The markers below the output come on top of it.
OUTPUT_LIMIT_BYTES = CONTENT_LIMIT_BYTES - 4_000
TITLE_LIMIT = 300
IN_BACKGROUND = "In the background, until it ends, is ended, or the session is closed."


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
    background: Annotated[
        bool,
        Field(description="Leave it running and go on: for servers and watchers. Without a time limit."),
    ] = False


class RunCommand:
    name = "run_command"
    description = (
        "Run a shell command in the working directory and wait for its end. stdin is empty. Gives stdout "
        "and stderr as they came, then the exit code when it is not 0. Whatever the command leaves running "
        "is ended with it. To leave it running, set `background`: job_output and job_kill go on with it."
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
        if args.background and ctx.workspace.jobs is None:
            raise ToolRefused("nothing can run in the background here.", code="NOT_HERE")
        body: list[CardItem] = [] if title == args.command.strip() else [CardCode(args.command, "sh")]
        if args.background:
            body.append(CardText(IN_BACKGROUND))
        if sandbox is not None:
            body.append(CardText(sandbox.words))
        card = Card(
            kind="execute",
            title=title,
            body=tuple(body),
            input=bounded_input(args.model_dump(exclude_unset=True)),
            terminal=None if args.background else cwd,
        )
        timeout_s = math.inf if args.background else min(args.timeout_s, LONGEST_TIMEOUT_S)
        command = Command(args.command, cwd, timeout_s, OUTPUT_LIMIT_BYTES)
        return Prepared(card, Effect("execute", shell=args.command, cwd=cwd), command)

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        command: Command = prepared.state
        if ctx.token.fired:
            return stopped_before_acting()
        if command.timeout_s == math.inf:
            return _started(command, ctx)

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


def _started(command: Command, ctx: ToolContext) -> ToolOutcome:
    assert ctx.workspace.jobs is not None
    try:
        job = ctx.workspace.jobs.start(command, ctx.turn)
    except TooManyJobs as error:
        return failed(f"{error}", "TOO_MANY")
    words = f"{job.id} runs in the background. job_output tells what it prints, job_kill ends it."
    return ToolOutcome((Text(words),))


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
