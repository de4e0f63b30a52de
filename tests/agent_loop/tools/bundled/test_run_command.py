"""run_command: a command as the person approves it, and its end as the model reads it."""

import json
import os
import signal
from dataclasses import replace

import anyio
import pytest

from agent_loop.cards import Card, CardCode, CardOutput, CardText
from agent_loop.events.bus import Bus
from agent_loop.events.facts import Exit
from agent_loop.tools.bundled import bundled_tools
from agent_loop.tools.bundled.run_command import LONGEST_TIMEOUT_S, RunCommand
from agent_loop.tools.registry import BoundCall, ToolRegistry
from agent_loop.tools.tool import Effect, ToolRefused
from agent_loop.workspace import local_commands
from agent_loop.workspace.commands import Command, CommandResult
from agent_loop.workspace.sandbox import Sandbox
from tests.doubles.workshop import Workshop, said

RUN = RunCommand()


async def test_the_card_shows_the_exact_command(workshop: Workshop) -> None:
    """Spec acp 5.9: title = exact command; permission shows what will run."""
    prepared = await workshop.prepare(RUN, command="ls -l | wc", timeout_s=5)

    root = str(workshop.root)
    arguments = {"command": "ls -l | wc", "timeout_s": 5.0}
    assert prepared.card == Card("execute", "ls -l | wc", input=arguments, terminal=root)
    assert prepared.effect == Effect("execute", shell="ls -l | wc", cwd=root)
    assert prepared.state == Command("ls -l | wc", root, 5.0, 60_000)
    assert not RUN.parallel_safe(RUN.arguments(command="ls"))


async def test_the_card_says_what_confines_the_command(workshop: Workshop) -> None:
    """Our promise: who approves a command knows what it may do."""
    ctx = workshop.context()
    ctx = replace(ctx, workspace=replace(ctx.workspace, sandbox=Sandbox("read-only")))

    prepared = await RUN.prepare(RUN.arguments(command="ls"), ctx)

    assert prepared.card.body == (CardText("In a sandbox: writes nothing, without network."),)


@pytest.mark.parametrize(
    ("command", "title", "whole"),
    [
        ("ls\n", "ls", False),
        ("cd a\nls", "cd a …", True),
        ("echo a\rls", "echo a\N{REPLACEMENT CHARACTER}ls", True),
        ("x" * 500, "x" * 300 + " …", True),
    ],
)
async def test_a_command_that_is_no_one_line_is_shown_whole_below(
    workshop: Workshop, command: str, title: str, whole: bool
) -> None:
    """Our promise: nothing of a command is hidden from who approves it."""
    prepared = await workshop.prepare(RUN, command=command)

    assert prepared.card.title == title
    assert prepared.card.body == ((CardCode(command, "sh"),) if whole else ())
    assert prepared.effect.shell == command


async def test_timeouts_have_a_default_and_a_cap(workshop: Workshop) -> None:
    """Spec loop 1.11: 120 s, at most 600 s."""
    usual = await workshop.prepare(RUN, command="ls")
    longest = await workshop.prepare(RUN, command="ls", timeout_s=1e9)

    assert usual.state.timeout_s == 120
    assert longest.state.timeout_s == LONGEST_TIMEOUT_S


@pytest.mark.parametrize("command", ["", " \n", "a\0b"])
async def test_no_command_is_refused(workshop: Workshop, command: str) -> None:
    """Spec loop 1.11: an empty command is an error result."""
    with pytest.raises(ToolRefused, match="must be a shell command") as refused:
        await workshop.prepare(RUN, command=command)

    assert refused.value.code == "INVALID_ARGS"


@pytest.mark.parametrize(
    ("command", "text", "ended"),
    [
        ("echo out; echo err >&2", "out\nerr", Exit(code=0)),
        (":", "(no output)", Exit(code=0)),
        ("printf x; exit 3", "x\n[exit code: 3]", Exit(code=3)),
        ("kill -9 $$", "(no output)\n[killed by signal: SIGKILL]", Exit(signal="SIGKILL")),
    ],
)
async def test_the_model_reads_the_output_then_how_it_ended(
    workshop: Workshop, command: str, text: str, ended: Exit
) -> None:
    """Spec loop 1.11: markers; an exit that is not 0 is no error."""
    outcome = await workshop.run(RUN, command=command)

    assert said(outcome) == text
    assert outcome.exit == ended
    assert (outcome.is_error, outcome.outcome) == (False, "ran")


@pytest.mark.parametrize(
    ("code", "ended_by", "markers"),
    [
        (None, "SIGTERM", "[timed out after 1.5 s]\n[killed by signal: SIGTERM]"),
        (0, None, "[timed out after 1.5 s]"),
        (7, None, "[timed out after 1.5 s]\n[exit code: 7]"),
    ],
)
async def test_a_deadline_is_told_however_the_command_ended(
    workshop: Workshop, code: int | None, ended_by: str | None, markers: str
) -> None:
    """Spec loop 1.11: independent of how it ended."""

    class Expired:
        async def run(self, command: Command, *_: object, **__: object) -> CommandResult:
            return CommandResult("a\n", code, ended_by, timed_out=True)

    ctx = workshop.context()
    prepared = await workshop.prepare(RUN, command="x", timeout_s=1.5)

    outcome = await RUN.run(prepared, replace(ctx, workspace=replace(ctx.workspace, commands=Expired())))

    assert said(outcome) == f"a\n{markers}"
    assert outcome.exit == Exit(code, ended_by, timed_out=True)
    assert not outcome.is_error


async def test_output_is_shown_live_and_at_the_end(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contracts 2: accumulated, bounded, live; the card at the end holds it."""
    monkeypatch.setattr(local_commands, "TELL_AFTER_S", 0)

    outcome = await workshop.run(RUN, command=":\necho one")

    assert workshop.told == [("one\n", False)]
    assert outcome.card is not None
    assert outcome.card.body == (CardCode(":\necho one", "sh"), CardOutput("one\n"))


async def test_long_output_is_bounded_and_its_file_named(workshop: Workshop) -> None:
    """Contracts 2: the log holds what the model got and the path of the rest."""
    outcome = await workshop.run(RUN, command="seq 1 100000; exit 1")

    *_, place, ended = said(outcome).splitlines()
    spill = place.removeprefix("[all of the output is in ").removesuffix("; look into it with run_command]")
    assert ended == "[exit code: 1]"
    assert len(said(outcome).encode()) <= 64_000
    assert os.path.getsize(spill) == 588_895
    assert outcome.card is not None
    assert outcome.card.body[-1] == CardOutput(said(outcome).partition("\n[all of")[0] + "\n", truncated=True)


async def test_a_command_that_cannot_start_is_an_error(workshop: Workshop) -> None:
    """Spec loop 1.11: spawn failures are errors."""
    prepared = await workshop.prepare(RUN, command="ls")
    workshop.root.rmdir()

    outcome = await RUN.run(prepared, workshop.context())

    assert (outcome.is_error, outcome.error_code) == (True, "NOT_STARTED")
    assert said(outcome) == (
        f"Error: the command could not be started: {workshop.root}: No such file or directory"
    )


async def test_a_fired_token_starts_nothing(workshop: Workshop) -> None:
    """Contracts 6: ask the token right before every effect."""
    prepared = await workshop.prepare(RUN, command="touch started")
    workshop.turn.fired = True

    outcome = await RUN.run(prepared, workshop.context())

    assert (outcome.outcome, outcome.is_error) == ("interrupted", True)
    assert os.listdir(workshop.root) == []


async def test_cancelling_the_call_kills_the_command(workshop: Workshop) -> None:
    """Scenario: `call(shell, "sleep 30")`, cancel; the child is dead and the cancellation goes on."""
    prepared = await workshop.prepare(RUN, command="echo $$ >pid; echo ready; exec sleep 60")

    with anyio.fail_after(10), anyio.CancelScope() as scope:
        ctx = replace(workshop.context(), output=lambda *_: scope.cancel())
        await RUN.run(prepared, ctx)

    assert scope.cancelled_caught
    with pytest.raises(ProcessLookupError):
        os.kill(int((workshop.root / "pid").read_text()), signal.SIGCONT)


async def test_the_bundled_tools_work_through_the_registry(workshop: Workshop) -> None:
    """The names and arguments models are told of, from the raw text to the disk."""
    registry = ToolRegistry(Bus())
    for tool in bundled_tools():
        registry.register(tool)

    async def call(name: str, **arguments: object) -> str:
        prepared = await registry.prepare(name, json.dumps(arguments), workshop.context())
        assert isinstance(prepared, BoundCall)
        return said(await registry.execute(prepared, registry.run_body))

    names = "read list search find edit write delete move run_command job_output job_kill "
    names += "fetch_url update_plan"
    assert " ".join(spec.name for spec in registry.schemas("s1")) == names
    assert await call("write", path="a.txt", content="hello\n") == "Created a.txt: 6 bytes written."
    assert await call("read", path="a.txt") == "hello\n"
    assert await call("list") == "a.txt  6"
    assert await call("run_command", command="cat a.txt") == "hello"
    assert await call("read", path="b.txt") == f"Error: {workshop.root}/b.txt: No such file or directory"
