"""LocalCommands against real shells: how a command is run, and that nothing is left of it."""

import os
import resource
import signal
import stat
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from agent_loop.workspace import local_commands
from agent_loop.workspace.children import Children, Group
from agent_loop.workspace.commands import Command, CommandResult
from agent_loop.workspace.local_commands import LocalCommands, scrubbed
from agent_loop.workspace.spill import SPILL_LIMIT_BYTES

GRACE_S = 0.2
WHEN_TOLD = 77.0  # a deadline that passes with the first output, however slow the machine
TERM_IGNORED = "trap '' TERM; echo ready; while :; do sleep 60; done"


class Shell:
    """A runner in a folder of its own, and what it told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spills = folder / "spills"
        self.children = Children(GRACE_S)
        self.environ = dict(os.environ)
        self.commands = LocalCommands(self.children, str(self.spills), environ=self.environ)
        self.told: list[tuple[str, bool]] = []
        self.on_told: Callable[[str], object] = lambda _: None

    async def run(self, shell: str, *, timeout_s: float = 20, limit_bytes: int = 1000) -> CommandResult:
        with anyio.fail_after(30):
            return await self.commands.run(
                Command(shell, str(self.folder), timeout_s, limit_bytes), self._tell
            )

    def _tell(self, text: str, truncated: bool) -> None:
        self.told.append((text, truncated))
        self.on_told(text)

    def pid(self, name: str) -> int:
        return int((self.folder / name).read_text())


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A runner that tells at once; after each test no descriptor and no group of it is left."""
    monkeypatch.setattr(local_commands, "TELL_AFTER_S", 0)
    before = os.listdir("/dev/fd")
    made = Shell(tmp_path)
    after = local_commands._after
    monkeypatch.setattr(
        local_commands, "_after", lambda s: (lambda: bool(made.told)) if s == WHEN_TOLD else after(s)
    )
    yield made
    assert os.listdir("/dev/fd") == before
    assert made.children._groups == set()


def lives(pid: int) -> bool:
    """Whether a process is there and no zombie; PID 1 may be slow to reap what is not ours."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, check=False)
    return not state.stdout.strip().startswith((b"Z", b"X")) and bool(state.stdout.strip())


def zombies() -> list[str]:
    """Children of this process that ended and were not reaped."""
    listed = subprocess.run(["ps", "-A", "-o", "ppid=,stat="], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if line.split() == [str(os.getpid()), "Z"]]


async def test_output_comes_merged_in_order_with_the_exit_code(shell: Shell) -> None:
    """The CommandRunner seam: stdout and stderr as they came."""
    result = await shell.run("echo one; echo two >&2; printf '\\033[31mthree'; exit 3")

    assert result == CommandResult("one\ntwo\nthree", 3, None, timed_out=False)


async def test_a_signal_is_named_and_an_unknown_one_numbered(shell: Shell) -> None:
    """The CommandRunner seam: exit_code is None when a signal ended it."""
    known = await shell.run("kill -KILL $$")
    unknown = await shell.run("kill -40 $$")

    assert (known.exit_code, known.signal) == (None, "SIGKILL")
    assert (unknown.exit_code, unknown.signal) in [(None, "signal 40"), (None, "SIG40")]


async def test_a_command_reads_nothing_and_holds_no_descriptor_of_ours(shell: Shell) -> None:
    """Contracts 13: children never inherit fd 0 or 1; B15 of the scenarios."""
    reading, writing = os.pipe()
    os.write(writing, b"the editor's next line\n")
    os.set_inheritable(writing, True)
    stdin = os.dup(0)
    os.dup2(reading, 0)

    try:
        read = await shell.run("cat; tty")
        held = await shell.run("ls /dev/fd/")
    finally:
        os.dup2(stdin, 0)
        for descriptor in (stdin, reading, writing):
            os.close(descriptor)

    assert read.output == "not a tty\n"
    assert set(held.output.split()) <= {"0", "1", "2", "3"}  # 3 is the listing's own


async def test_the_environment_has_no_secrets_and_asks_for_plain_output(shell: Shell) -> None:
    """Loop spec 1.11."""
    shell.environ.update(my_api_key="1", A_SECRET_X="2", TOKENS="3", Password="4", CREDENTIALS="5", KEPT="6")
    shell.environ.update(GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="a.b", GIT_CONFIG_VALUE_0="c", TERM="xterm")

    result = await shell.run("env", limit_bytes=100_000)

    inherited = dict(line.split("=", 1) for line in result.output.splitlines() if "=" in line)
    assert inherited["KEPT"] == "6"
    assert {name: inherited[name] for name in local_commands.PLAIN_OUTPUT} == local_commands.PLAIN_OUTPUT
    assert not {"my_api_key", "A_SECRET_X", "TOKENS", "Password", "CREDENTIALS"} & inherited.keys()
    assert not [name for name in inherited if name.startswith("GIT_CONFIG_")]
    assert scrubbed({}) == local_commands.PLAIN_OUTPUT


async def test_a_command_runs_in_its_own_directory_and_session(shell: Shell) -> None:
    """Decision 13: the process never changes directory, each session has its own."""
    result = await shell.run("pwd; echo $$; ps -o pgid= -o sid= -p $$")

    directory, pid, ids = result.output.splitlines()
    assert directory == str(shell.folder)
    assert ids.split() == [pid, pid]


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (Command("true", "/no/such/place", 1, 100), FileNotFoundError),
        (Command("x" * 3_000_000, "/", 1, 100), OSError),
        (Command("a\0b", "/", 1, 100), ValueError),
    ],
)
async def test_what_cannot_be_started_raises_and_leaves_nothing(
    shell: Shell, command: Command, error: type[Exception]
) -> None:
    """The CommandRunner seam."""
    with pytest.raises(error):
        await shell.commands.run(command, lambda *_: None)


async def test_output_is_told_while_it_comes_at_most_ten_times_a_second(shell: Shell) -> None:
    """The CommandRunner seam: all output so far, bounded."""
    began = time.monotonic()

    result = await shell.run(
        "i=0; while [ $i -lt 40 ]; do echo $i; sleep 0.01; i=$((i+1)); done", limit_bytes=60
    )

    took_s = time.monotonic() - began
    assert 2 <= len(shell.told) <= took_s / local_commands.TELL_EVERY_S + 1
    assert shell.told[0][0].startswith("0\n")
    assert not shell.told[0][1]
    assert shell.told[-1][1]
    assert result.omitted_bytes > 0


async def test_a_command_that_is_soon_over_is_told_by_its_result_alone(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: how many updates an editor sees of `ls` does not hang on the scheduler."""
    monkeypatch.setattr(local_commands, "TELL_AFTER_S", 60)

    await shell.run("echo one; echo two")

    assert shell.told == []


async def test_whole_output_leaves_no_file(shell: Shell) -> None:
    """Loop spec 1.11: spilled only when something is left out."""
    result = await shell.run("printf 1234567890", limit_bytes=10)

    assert (result.output, result.omitted_bytes, result.spill_path) == ("1234567890", 0, None)
    assert not shell.spills.exists()


async def test_long_output_keeps_its_ends_and_all_of_it_in_a_private_file(shell: Shell) -> None:
    """Loop spec 1.11: a private 0700 folder, a 0600 file."""
    result = await shell.run("seq 1 5000; printf '\\033[1mend'", limit_bytes=100)

    assert result.output.startswith("1\n2\n3\n")
    assert result.output.endswith("\n5000\nend")
    assert f"\n[… {result.omitted_bytes:,} bytes left out …]\n" in result.output
    assert result.spill_path is not None
    spill = Path(result.spill_path)
    assert spill.read_bytes() == "".join(f"{n}\n" for n in range(1, 5001)).encode() + b"\033[1mend"
    assert stat.S_IMODE(spill.stat().st_mode) == 0o600
    assert stat.S_IMODE(spill.parent.stat().st_mode) == 0o700


async def test_output_that_is_no_text_is_bounded_and_kept_too(shell: Shell) -> None:
    """Our promise: replacement characters take more room than what they stand for."""
    result = await shell.run("printf '\\377\\377\\377\\377'", limit_bytes=6)

    assert result.output == "�\n[… 6 bytes left out …]\n�"
    assert result.spill_path is not None
    assert Path(result.spill_path).read_bytes() == b"\xff" * 4


async def test_a_flood_stays_bounded_in_memory(shell: Shell) -> None:
    """Our promise: a command that prints without end does not take the server with it."""
    tracemalloc.start()

    try:
        result = await shell.run("head -c 100000000 /dev/zero | tr '\\0' x", limit_bytes=60_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert result.omitted_bytes == 100_000_000 - 60_000
    assert peak < 16_000_000
    assert result.spill_path is not None
    assert os.path.getsize(result.spill_path) == 100_000_000
    os.unlink(result.spill_path)


@pytest.mark.sweep
async def test_a_flood_of_more_than_a_gigabyte_stays_bounded_in_memory_disk_and_time(shell: Shell) -> None:
    """Issue "Acting with consent", kill tests: what is beyond the limit of the spill is dropped."""
    flood = 1_100_000_000
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with anyio.fail_after(60):
        result = await shell.run(f"yes flood | head -c {flood}", limit_bytes=60_000, timeout_s=60)

    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    assert result.spill_path is not None
    assert os.path.getsize(result.spill_path) <= SPILL_LIMIT_BYTES + 100
    os.unlink(result.spill_path)
    assert (result.timed_out, result.omitted_bytes > flood - 70_000) == (False, True)
    assert grown_kb < 64_000


async def test_a_deadline_asks_first_and_the_last_words_are_kept(shell: Shell) -> None:
    """Loop spec 1.11: SIGTERM, then SIGKILL after the grace."""
    result = await shell.run(
        "trap 'echo bye; exit 7' TERM; echo ready; while :; do :; done", timeout_s=WHEN_TOLD
    )

    assert result == CommandResult("ready\nbye\n", 7, None, timed_out=True)


async def test_a_command_deaf_to_sigterm_is_killed_after_the_grace(shell: Shell) -> None:
    """Loop spec 1.11."""
    result = await shell.run(TERM_IGNORED, timeout_s=WHEN_TOLD)

    assert (result.output, result.signal, result.timed_out) == ("ready\n", "SIGKILL", True)


async def test_lowering_the_grace_shortens_a_wait_that_runs(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contracts 13: 0.3 s when shutting down, 3 s otherwise."""
    shell.children.kill_grace_s = 60

    def lower(group: Group, number: signal.Signals) -> None:
        send(group, number)
        shell.children.kill_grace_s = 0

    send = Group.signal
    monkeypatch.setattr(Group, "signal", lower)

    result = await shell.run(TERM_IGNORED, timeout_s=WHEN_TOLD)

    assert result.signal == "SIGKILL"


async def test_a_flood_does_not_hide_the_deadline(shell: Shell) -> None:
    """Our promise: deadlines hold while output comes."""
    result = await shell.run("yes", timeout_s=0.2)

    assert (result.timed_out, result.signal) == (True, "SIGTERM")


async def test_a_command_that_closes_its_output_is_still_waited_for(shell: Shell) -> None:
    """Rule 4 of local_commands."""
    result = await shell.run("echo said; exec >&- 2>&-; sleep 0.1; exit 5")

    assert (result.output, result.exit_code) == ("said\n", 5)


@pytest.mark.parametrize(
    "left",
    [
        "sleep 60 & echo $! >pid",
        "sleep 60 >/dev/null 2>&1 & echo $! >pid",
        "(trap '' TERM; exec sleep 60) & echo $! >pid",
        "yes & echo $! >pid",
        "exec 3>&1; (sleep 60) & echo $! >pid; exec >&- 2>&-",
    ],
)
async def test_nobody_in_the_background_outlives_the_call_or_holds_it_up(shell: Shell, left: str) -> None:
    """B03, B12 of the scenarios, and our promise: nothing outlives its call."""
    began = time.monotonic()

    result = await shell.run(f"{left}; exit 6")

    assert (result.exit_code, result.timed_out) == (6, False)
    assert not lives(shell.pid("pid"))
    assert time.monotonic() - began < 15


async def test_whoever_left_for_a_session_of_its_own_does_not_hold_up_the_call(shell: Shell) -> None:
    """Our promise: a daemon that keeps the pipe open hangs nobody. Ending it is beyond a group's reach."""
    result = await shell.run(
        "setsid sh -c 'echo $$ >pid; echo there; exec sleep 60' & echo done; until [ -s pid ]; do :; done"
    )
    os.kill(shell.pid("pid"), signal.SIGKILL)

    assert (result.exit_code, sorted(result.output.split())) == (0, ["done", "there"])


async def test_cancelling_ends_the_group_and_the_cancellation_goes_on(shell: Shell) -> None:
    """The CommandRunner seam; scenario: `call(shell, "sleep 30")`, cancel, child dead."""
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        shell.on_told = lambda _: scope.cancel()
        await shell.run("sleep 60 & echo $! >pid; echo $$ >shell; echo ready; sleep 60")
        pytest.fail("a cancelled call returns nothing")

    assert scope.cancelled_caught
    assert not lives(shell.pid("pid"))
    assert not lives(shell.pid("shell"))


async def test_cancelling_kills_whoever_does_not_listen(shell: Shell) -> None:
    """The CommandRunner seam: waits, bounded, for it to be gone."""
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        shell.on_told = lambda _: scope.cancel()
        await shell.run(f"echo $$ >shell; {TERM_IGNORED}")

    assert not lives(shell.pid("shell"))


async def test_a_call_cancelled_before_it_began_starts_nothing(shell: Shell) -> None:
    """The CommandRunner seam."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        await shell.run("touch started")

    assert os.listdir(shell.folder) == []


@pytest.mark.parametrize("moment", range(12))
async def test_whenever_the_cancel_comes_nothing_is_left(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    """Cancelling is normal: at each of a call's first waits, its deadline and its killing included."""
    waits = 0

    def counted(wait: Callable[..., object]) -> Callable[..., object]:
        def waiting(*args: object) -> object:
            nonlocal waits
            waits += 1
            if waits > moment:
                scope.cancel()
            return wait(*args)

        return waiting

    monkeypatch.setattr(anyio, "wait_readable", counted(anyio.wait_readable))
    monkeypatch.setattr(anyio, "sleep", counted(anyio.sleep))
    monkeypatch.setattr(local_commands, "_LONGEST_PAUSE_S", 0.01)
    shell.children.kill_grace_s = 0.02

    with anyio.fail_after(5), anyio.CancelScope() as scope:
        await shell.run(
            "(trap '' TERM; exec sleep 60) & echo $! >pid; seq 1 2000; exec >&- 2>&-; sleep 60",
            timeout_s=0.1,
            limit_bytes=20,
        )

    assert not (shell.folder / "pid").exists() or not lives(shell.pid("pid"))
    if scope.cancelled_caught:
        assert not shell.spills.exists() or os.listdir(shell.spills) == []


async def test_a_second_harder_cancel_still_leaves_nobody(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 2 of local_commands: asyncio itself may break the shield, when it ends."""

    async def broken(_: object) -> None:
        raise RuntimeError("the shield broke")

    monkeypatch.setattr(local_commands._Call, "_end_group", broken)

    with pytest.raises(RuntimeError, match="the shield broke"):
        await shell.run("sleep 60 & echo $! >pid; echo ready; sleep 60", timeout_s=WHEN_TOLD)

    assert not lives(shell.pid("pid"))
    monkeypatch.undo()
    await shell.run(":")


async def test_a_group_stuck_in_the_kernel_does_not_hang_the_call(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: every wait has an end."""
    monkeypatch.setattr(local_commands, "KILL_WAIT_S", 0)
    shell.children.kill_grace_s = 0

    with monkeypatch.context() as patched:
        patched.setattr(os, "killpg", lambda *_: None)
        result = await shell.run("echo $$ >shell; echo ready; exec sleep 60", timeout_s=WHEN_TOLD)

    assert (result.exit_code, result.signal, result.timed_out) == (None, "SIGKILL", True)
    assert lives(shell.pid("shell"))
    (stuck,) = shell.children._groups
    shell.children.kill_all()
    await run_sync(stuck._process.wait, 10)
    await shell.run(":")


async def test_a_listener_that_raises_ends_the_command_and_is_heard(shell: Shell) -> None:
    """Style: a bug of ours rises, loudly; and it leaves nothing behind."""

    def raises(_: str) -> None:
        raise LookupError("listener")

    def first(_: str) -> None:
        shell.on_told = raises

    shell.on_told = first

    with pytest.raises(LookupError, match="listener"):
        await shell.run("echo $$ >shell; seq 1 300000; sleep 0.2; echo; sleep 60", limit_bytes=20)

    assert not lives(shell.pid("shell"))
    assert os.listdir(shell.spills) == []


async def test_many_commands_side_by_side_leave_no_zombie(shell: Shell) -> None:
    """Our promise: every child of ours is reaped."""
    async with anyio.create_task_group() as group:
        for _ in range(12):
            group.start_soon(shell.run, "sleep 60 & seq 1 300 | sort | tail -n1; exit 1")

    assert zombies() == []


async def test_the_last_chance_kills_what_runs_without_waiting(shell: Shell) -> None:
    """Contracts 13: a second signal kills the groups and exits."""
    shell.on_told = lambda _: shell.children.kill_all()

    result = await shell.run(TERM_IGNORED)
    shell.children.kill_all()

    assert (result.signal, result.timed_out) == ("SIGKILL", False)
