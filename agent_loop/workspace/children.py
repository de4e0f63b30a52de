"""Process groups we started, so that none outlives us.

Rules.
1. A child leads its own session: its group's number is its pid, and one signal reaches all it started.
2. The number stays taken while anybody in the group lives. `gone` is asked right before each signal,
   nothing awaited in between, and once true it stays true: a stranger's group is never signalled.
3. A child is polled, not waited for. Child watchers differ by platform and Python version, a pidfd is
   Linux only, a thread per child outlives a cancel; and the end of its output tells first anyway.
4. Whoever started a group hands it back with `release`; a group that survives even SIGKILL for now
   (stuck in the kernel) is remembered and reaped by a later `start`.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

KILL_GRACE_S = 3.0
CLOSING_KILL_GRACE_S = 0.3


class Group:
    """A child and all it started that did not leave for a session of its own."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._gone = False
        self._witness: int | None = None

    @property
    def exit_code(self) -> int | None:
        """The child's: a signal that ended it is negative; None while it runs."""
        return self._process.poll()

    def ended(self) -> bool:
        """Whether the child itself has ended (and is reaped); others of its group may live on."""
        return self._process.poll() is not None

    def gone(self) -> bool:
        """Whether nobody of the group is left."""
        if self._gone or not self.ended():
            return self._gone

        self._reap_orphans()
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            # Not permitted: a zombie on macOS, or somebody of another user; either way none of ours to kill.
            self._gone = True
        else:
            self._gone = not self._anybody_lives()

        return self._gone

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to everybody in the group, if anybody is left."""
        if not self.gone():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)

    def _anybody_lives(self) -> bool:
        """Whether somebody in the group is more than a zombie that PID 1 is slow, or fails, to reap."""
        if self._witness is None or not _lives(self._witness, self._process.pid):
            try:
                everybody = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
            except OSError:
                return True  # not Linux, where zombies cannot be signalled anyway

            self._witness = next((pid for pid in everybody if _lives(pid, self._process.pid)), None)

        return self._witness is not None

    def _reap_orphans(self) -> None:
        """Reap what fell to us; that happens when we are PID 1, in a container."""
        with suppress(ChildProcessError):
            while os.waitpid(-self._process.pid, os.WNOHANG)[0]:
                pass


class Children:
    """Every group of this process that still runs.

    Attributes:
        kill_grace_s: Seconds between SIGTERM and SIGKILL. Lowering it shortens waits that already run.
    """

    def __init__(self, kill_grace_s: float = KILL_GRACE_S) -> None:
        self.kill_grace_s = kill_grace_s
        self._groups: set[Group] = set()

    def start(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], output: int, stdin: int | None = None
    ) -> Group:
        """Start a child that leads its own group; it inherits no descriptor but those given.

        It blocks for a third of a millisecond. A thread would not help: forking holds the interpreter's
        lock, and with nothing awaited a cancel cannot fall between the child and who must end it.

        Args:
            output: Descriptor its stdout and stderr go to.
            stdin: Descriptor it reads from; None gives it the null device.
        Raises:
            OSError: It could not be started.
        """
        self._groups = {group for group in self._groups if not group.gone()}
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        group = Group(process)
        self._groups.add(group)
        return group

    def release(self, group: Group) -> None:
        """Done with it: what is left of it is killed, and only what even that does not end is remembered."""
        group.signal(signal.SIGKILL)
        if group.gone():
            self._groups.discard(group)

    def kill_all(self) -> None:
        """Kill every group at once: the last thing before a hard exit. Never raises, waits for nothing."""
        for group in tuple(self._groups):
            group.signal(signal.SIGKILL)


def _lives(pid: int, group: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name in parentheses may hold anything; after it come the state, the parent, the group.
            state, _, its_group = file.read().rpartition(b")")[2].split(maxsplit=3)[:3]
    except OSError:
        return False

    return int(its_group) == group and state not in (b"Z", b"X")
