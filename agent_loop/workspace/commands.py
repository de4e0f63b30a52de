"""The CommandRunner seam: one command, run to its end or to its deadline."""

from collections.abc import Callable
from typing import Protocol

from agent_loop.record import record


@record
class Command:
    """What to run.

    Attributes:
        shell: A line for the user's POSIX shell (`/bin/sh -c`).
        cwd: Absolute directory to run in.
        timeout_s: Seconds until it is killed.
        limit_bytes: How much of the output is kept, half from its head and half from its tail.
    """

    shell: str
    cwd: str
    timeout_s: float
    limit_bytes: int


@record
class CommandResult:
    """How it went. Output is stdout and stderr as they came, decoded, control sequences taken out.

    Attributes:
        exit_code: None when a signal ended it.
        signal: Name such as `SIGKILL`, else None.
        omitted_bytes: How much was left out between head and tail; 0 when the output is whole, 1 when some
            was left out and nobody knows how much.
        spill_path: Private file with the whole output when some was left out, else None.
    """

    output: str
    exit_code: int | None
    signal: str | None
    timed_out: bool
    omitted_bytes: int = 0
    spill_path: str | None = None


class CommandLost(OSError):
    """A command was started, and how it ends will not be known; the message says why."""


class CommandRunner(Protocol):
    """Runs commands for one session."""

    async def run(
        self,
        command: Command,
        on_output: Callable[[str, bool], None],
        *,
        on_terminal: Callable[[str], None] = lambda _: None,
    ) -> CommandResult:
        """Run to the end.

        Cancelling the call kills the whole process group and waits, bounded, for it to be gone.

        Args:
            on_output: Told now and then (at most ten times a second) all output so far, bounded to the
                same limit, and whether some was left out.
            on_terminal: Told, before anything else, the id of the editor's terminal it runs in, if it does.
        Raises:
            OSError: It could not be started.
            CommandLost: It was, and nobody can say how it ended.
        """
