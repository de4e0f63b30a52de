"""Commands a session leaves running while its agent goes on: jobs, in the order they were started.

Rules.
1. A job belongs to its session, and ends with it; nobody else can name it.
2. A job that was started in a turn that is stopped is ended with that turn.
3. What it printed is bounded. Each piece is read once; a reader is told where a piece is missing.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup

from agent_loop.events.contain import supervise
from agent_loop.workspace.commands import Command, CommandResult, CommandRunner

RUNNING_LIMIT: Final = 8
KEPT_LIMIT: Final = 32


class TooManyJobs(Exception):
    """As many jobs run as may; the message says how many."""


class Job:
    """One command in the background.

    Attributes:
        turn: In which it was started.
        result: How it went; None while it runs, and if it could not be run.
        failure: Why it could not be run.
        killed: Whether it was ended on purpose.
    """

    def __init__(self, job_id: str, command: Command, turn: int) -> None:
        self.id = job_id
        self.command = command
        self.turn = turn
        self.result: CommandResult | None = None
        self.failure: str | None = None
        self.killed = False
        self.scope = anyio.CancelScope()
        self._text, self._truncated = "", False
        self._read = ""
        self._ended = False
        self._news = anyio.Event()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._ended

    def printed(self, text: str, truncated: bool) -> None:
        """Take all it has printed so far."""
        self._text, self._truncated = text, truncated
        self._ring()

    def end(self) -> None:
        """It is over."""
        if self.result is not None:
            self._text, self._truncated = self.result.output, self.result.omitted_bytes > 0
        self._ended = True
        self._ring()

    def kill(self) -> None:
        """End it, and all it started, as soon as that is possible."""
        if not self._ended:
            self.killed = True
            self.scope.cancel()

    def read(self) -> tuple[str, bool]:
        """What it printed since the last look, and whether part of that is missing."""
        text, was = self._text, self._read
        self._read = text
        if text.startswith(was):
            return text[len(was) :], self._truncated
        return text, True

    async def wait(self, seconds: float) -> None:
        """Until it has printed something that nobody has read, or has ended, or that long."""
        with anyio.move_on_after(seconds):
            while self.running and self._text == self._read:
                await self._news.wait()

    async def gone(self) -> None:
        """Until it has ended."""
        while self.running:
            await self._news.wait()

    def _ring(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()


class Jobs:
    """The jobs of one session.

    Args:
        tasks: Where they run; it outlives the session.
        commands: What runs them.
        ended: Told of each that ended by itself.
        report: Told of a bug in running one.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        commands: CommandRunner,
        ended: Callable[[Job], None],
        report: Callable[[str, BaseException], None],
    ) -> None:
        self._tasks = tasks
        self._commands = commands
        self._on_end = ended
        self._report = report
        self._jobs: dict[str, Job] = {}
        self._started = 0
        self._closed = False

    def start(self, command: Command, turn: int) -> Job:
        """Run a command in the background; its deadline is its own.

        Raises:
            TooManyJobs: RUNNING_LIMIT run already, or the session is closed.
        """
        if self._closed or sum(job.running for job in self._jobs.values()) >= RUNNING_LIMIT:
            raise TooManyJobs(f"{RUNNING_LIMIT} jobs run already; end one with job_kill first.")
        self._started += 1
        job = Job(f"job-{self._started}", command, turn)
        self._jobs[job.id] = job
        for old in [it.id for it in self._jobs.values() if not it.running][:-KEPT_LIMIT]:
            del self._jobs[old]
        self._tasks.start_soon(supervise, job.id, partial(self._run, job), self._report)
        return job

    def get(self, job_id: str) -> Job | None:
        """The session's job of that id; None for what is not, or no longer, known."""
        return self._jobs.get(job_id)

    def stop_turn(self, turn: int) -> None:
        """End what was started in a turn that was stopped."""
        for job in self._jobs.values():
            if job.turn == turn:
                job.kill()

    def close(self) -> None:
        """End them all; none is started any more."""
        self._closed = True
        for job in self._jobs.values():
            job.kill()

    async def _run(self, job: Job) -> None:
        try:
            with job.scope:
                job.result = await self._commands.run(job.command, job.printed)
        except OSError as error:
            job.failure = str(error)
        finally:
            job.end()
        if not job.killed:
            self._on_end(job)
