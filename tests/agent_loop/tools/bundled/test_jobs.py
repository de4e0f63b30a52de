"""Background jobs: real commands that go on while the agent does, read, ended, and never left behind."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_loop.cards import CardOutput, CardText
from agent_loop.record import replace
from agent_loop.tools.bundled.jobs import JobKill, JobOutput
from agent_loop.tools.bundled.run_command import IN_BACKGROUND, RunCommand
from agent_loop.tools.tool import Effect, Tool, ToolContext, ToolOutcome, ToolRefused
from agent_loop.workspace import local_commands
from agent_loop.workspace.commands import Command, CommandResult
from agent_loop.workspace.jobs import RUNNING_LIMIT, Job, Jobs
from agent_loop.workspace.local_commands import LocalCommands
from tests.doubles.workshop import Workshop, said

WAIT_S = 10.0
RUN, OUTPUT, KILL = RunCommand(), JobOutput(), JobKill()


class Yard:
    """A session with jobs."""

    def __init__(self, workshop: Workshop, jobs: Jobs, ended: list[Job]) -> None:
        self.workshop, self.jobs, self.ended = workshop, jobs, ended

    @property
    def context(self) -> ToolContext:
        ctx = self.workshop.context()
        return replace(ctx, workspace=replace(ctx.workspace, jobs=self.jobs))

    async def call(self, tool: Tool[Any], **arguments: object) -> ToolOutcome:
        prepared = await tool.prepare(tool.arguments.model_validate(arguments), self.context)
        return await tool.run(prepared, self.context)

    async def start(self, line: str) -> Job:
        told = said(await self.call(RUN, command=line, background=True))
        job = self.jobs.get(told.split()[0])
        assert job is not None
        return job


Open = Callable[[], AbstractAsyncContextManager[Yard]]


@pytest.fixture
def opened(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Open:
    monkeypatch.setattr(local_commands, "TELL_AFTER_S", 0)
    monkeypatch.setattr(local_commands, "TELL_EVERY_S", 0)

    @asynccontextmanager
    async def yard() -> AsyncIterator[Yard]:
        ended: list[Job] = []
        bugs: list[BaseException] = []
        commands = LocalCommands(workshop.children, str(workshop.root.parent / "spills"))
        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as tasks:
                jobs = Jobs(tasks, commands, ended.append, lambda _, error: bugs.append(error))
                yield Yard(workshop, jobs, ended)
                jobs.close()
        assert bugs == []

    return yard


async def test_a_job_is_started_read_and_ended(opened: Open) -> None:
    """Issue "Acting with consent": background jobs; each piece of output is read once."""
    async with opened() as yard:
        started = await yard.call(RUN, command="echo one; read line; echo two", background=True)
        job = await yard.start("echo one; cat > /dev/null; sleep 600")

        first = await yard.call(OUTPUT, job=job.id, wait_s=WAIT_S)
        again = await yard.call(OUTPUT, job=job.id)
        ended = await yard.call(KILL, job=job.id)

        assert said(started).startswith("job-1 runs in the background.")
        assert said(first) == f"one\n[{job.id} still runs]"
        assert first.card is not None
        assert first.card.body == (CardOutput("one\n"),)
        assert said(again) == f"(nothing new)\n[{job.id} still runs]"
        assert said(ended) == f"(nothing new)\n[{job.id} was ended]"
        assert said(await yard.call(KILL, job=job.id)) == said(ended)
    assert yard.ended == [yard.jobs.get("job-1")]


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("echo a; exit 3", "ended with exit code: 3"),
        ("echo a; kill -TERM $$", "was killed by signal: SIGTERM"),
    ],
)
async def test_how_a_job_ended_is_told(line: str, end: str, opened: Open) -> None:
    """Our promise: as of any command."""
    async with opened() as yard:
        job = await yard.start(line)
        await job.gone()

        assert said(await yard.call(OUTPUT, job=job.id)) == f"a\n[{job.id} {end}]"
        assert yard.ended == [job]


async def test_a_job_that_cannot_be_run_says_why(opened: Open) -> None:
    """Our promise: in words; the agent is not held up to learn it."""
    async with opened() as yard:
        job = yard.jobs.start(Command("true", "/nowhere/at/all", WAIT_S, 100), 1)
        await job.gone()

        assert "job-1 could not be run: " in said(await yard.call(OUTPUT, job="job-1"))


async def test_output_that_was_too_much_is_said_to_be_partial(opened: Open) -> None:
    """Spec loop 1.11: lossy reads are flagged; all of it is on the disk."""
    async with opened() as yard:
        job = await yard.start("echo begin; read x < /dev/null; seq 1 100000")
        await yard.call(OUTPUT, job=job.id, wait_s=WAIT_S)
        await job.gone()

        told = said(await yard.call(OUTPUT, job=job.id))

        assert "[part of the output is left out]" in told
        [path] = [word for word in told.replace(";", " ").split() if "spills" in word]
        assert Path(path).read_text().endswith("100000\n")


async def test_a_wait_ends_with_the_job_or_its_time(opened: Open) -> None:
    """Our promise: bounded, and no longer than there is something to wait for."""
    async with opened() as yard:
        job = await yard.start("sleep 600")
        quiet = await yard.call(OUTPUT, job=job.id, wait_s=0.01)
        short = await yard.start("exit 0")

        done = await yard.call(OUTPUT, job=short.id, wait_s=WAIT_S)

        assert said(quiet) == f"(nothing new)\n[{job.id} still runs]"
        assert said(done) == f"(nothing new)\n[{short.id} ended with exit code: 0]"


async def test_what_starts_a_job_is_asked_for_like_any_command(opened: Open) -> None:
    """Issue "Acting with consent": the exact command, and that it stays."""
    async with opened() as yard:
        arguments = RUN.arguments(command="npm run dev", background=True)
        prepared = await RUN.prepare(arguments, yard.context)

        assert prepared.effect == Effect("execute", shell="npm run dev", cwd=str(yard.workshop.root))
        assert (prepared.card.title, prepared.card.body) == ("npm run dev", (CardText(IN_BACKGROUND),))
        assert prepared.card.terminal is None


@pytest.mark.parametrize("tool", [OUTPUT, KILL])
async def test_a_job_of_somebody_else_is_no_job(tool: Tool[Any], opened: Open) -> None:
    """Issue "Acting with consent": owner checks; an id tells nothing."""
    async with opened() as mine, opened() as other:
        job = await other.start("sleep 600")

        for ctx in (mine.context, mine.workshop.context()):
            with pytest.raises(ToolRefused, match=f"there is no job '{job.id}' in this session") as refused:
                await tool.prepare(tool.arguments(job=job.id), ctx)
            assert refused.value.code == "NOT_FOUND"
        assert job.running


async def test_without_a_place_for_jobs_none_is_offered(workshop: Workshop) -> None:
    """Our promise: a command that should stay is not run to its end instead."""
    with pytest.raises(ToolRefused, match="nothing can run in the background here"):
        await workshop.prepare(RUN, command="sleep 1", background=True)


async def test_too_many_jobs_are_refused_and_old_ones_forgotten(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: bounded count."""
    monkeypatch.setattr("agent_loop.workspace.jobs.KEPT_LIMIT", 2)
    async with opened() as yard:
        for _ in range(4):
            await (await yard.start("true")).gone()
        for _ in range(RUNNING_LIMIT):
            await yard.start("sleep 600")

        refused = await yard.call(RUN, command="sleep 600", background=True)

        assert (refused.error_code, refused.is_error) == ("TOO_MANY", True)
        assert [yard.jobs.get(f"job-{n}") is None for n in range(1, 5)] == [True, True, False, False]
        yard.jobs.close()
        assert (await yard.call(RUN, command="true", background=True)).error_code == "TOO_MANY"


async def test_a_job_of_a_stopped_turn_ends_with_it(opened: Open) -> None:
    """Our promise: Stop is trusted; what earlier turns left running goes on."""
    async with opened() as yard:
        mark = f"600.{os.getpid()}3"
        early = yard.jobs.start(Command("sleep 600", "/", WAIT_S, 100), 1)
        late = yard.jobs.start(Command(f"setsid sleep {mark} & wait", "/", WAIT_S, 100), 2)

        yard.jobs.stop_turn(2)
        await late.gone()

        assert (early.running, late.killed) == (True, True)


async def test_a_bug_in_running_one_is_reported_and_ends_the_job() -> None:
    """Our promise: ours is loud in the log, and nobody waits for it."""

    class Broken:
        async def run(self, *_: object, **__: object) -> CommandResult:
            raise LookupError("bug")

    reported: list[str] = []
    async with anyio.create_task_group() as tasks:
        jobs = Jobs(tasks, Broken(), lambda _: None, lambda name, error: reported.append(f"{name} {error!r}"))
        job = jobs.start(Command("x", "/", WAIT_S, 100), 1)
        with anyio.fail_after(WAIT_S):
            await job.gone()

    assert reported == ["job-1 LookupError('bug')"]
