"""Commands in a sandbox: real ones, in a real one, with the file system as witness."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from agent_loop.record import replace
from agent_loop.workspace import sandbox as module
from agent_loop.workspace.children import Children
from agent_loop.workspace.commands import Command, CommandResult
from agent_loop.workspace.local_commands import LocalCommands
from agent_loop.workspace.roots import Roots
from agent_loop.workspace.sandbox import Sandbox, secrets_of, trouble_with

WRITES = Sandbox("workspace-write")
READS = Sandbox("read-only")
WAIT_S = 10.0

works = pytest.mark.skipif(
    (trouble := trouble_with(WRITES)) is not None, reason=f"no sandbox on this machine: {trouble}"
)


class Shell:
    """A session's commands in a sandbox."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.children = Children(0.1)

    async def run(self, line: str, sandbox: Sandbox = WRITES, *, timeout_s: float = WAIT_S) -> CommandResult:
        spills = str(self.root.parent / "spills")
        roots = Roots(str(self.root))
        commands = LocalCommands(self.children, spills, roots=roots, sandbox=sandbox)
        return await commands.run(Command(line, str(self.root), timeout_s, 10_000), lambda *_: None)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    root = tmp_path / "project"
    root.mkdir()
    made = Shell(root)
    yield made
    assert made.children._groups == set()


@works
async def test_a_command_writes_in_the_project_and_nowhere_else(shell: Shell) -> None:
    """Issue "Acting with consent": workspace-write."""
    outside = shell.root.parent / "outside"
    # Everybody may write there, when nothing confines them.
    elsewhere = Path("/var/tmp") / f"sandboxed-{os.getpid()}"

    result = await shell.run(f"echo a > in.txt; echo b > {outside}; echo c > {elsewhere}")

    assert (shell.root / "in.txt").read_text() == "a\n"
    assert not outside.exists()
    assert not elsewhere.exists()
    assert "Read-only file system" in result.output


@works
async def test_a_command_that_may_only_read_writes_nothing(shell: Shell) -> None:
    """Issue "Acting with consent": read-only; a place of its own for what it makes up meanwhile."""
    (shell.root / "in.txt").write_text("kept")

    result = await shell.run("cat in.txt; echo a > in.txt; echo b > /tmp/mine && cat /tmp/mine", READS)

    assert (shell.root / "in.txt").read_text() == "kept"
    assert result.output.startswith("kept")
    assert result.output.endswith("b\n")
    assert not Path("/tmp/mine").exists()


@works
async def test_nobody_is_reached_unless_that_is_allowed(shell: Shell) -> None:
    """Our promise: what a command read stays here; the settings say otherwise if they mean it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        line = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo reached"

        apart = await shell.run(f"bash -c '{line}'")
        along = await shell.run(f"bash -c '{line}'", replace(WRITES, network=True))

    assert "reached" not in apart.output
    assert along.output == "reached\n"


@works
async def test_what_is_masked_is_not_there(shell: Shell, tmp_path: Path) -> None:
    """Our promise: keys are no business of a command; what the server spilled for it is."""
    state = tmp_path / "state"
    (state / "spill").mkdir(parents=True)
    (state / "credentials.json").write_text("secret")
    (state / "spill" / "a").write_text("spilled")
    (tmp_path / "netrc").write_text("secret")
    masked = (str(state), str(tmp_path / "netrc"), str(tmp_path / "none"))
    sandbox = replace(WRITES, masked=masked, shown=str(state / "spill"))

    result = await shell.run(f"cat {state}/credentials.json {tmp_path}/netrc {state}/spill/a", sandbox)

    assert "secret" not in result.output
    assert "spilled" in result.output
    assert not (tmp_path / "none").exists()


@works
async def test_a_project_below_something_masked_is_there(shell: Shell, tmp_path: Path) -> None:
    """Our promise: where a person works is no secret to what they run there."""
    result = await shell.run("echo a > in.txt && cat in.txt", replace(WRITES, masked=(str(tmp_path),)))

    assert result.output == "a\n"


@works
async def test_sockets_that_would_lead_out_are_not_there(shell: Shell) -> None:
    """Our promise: a container's daemon, or a desktop's, would do for a command what it may not."""
    assert (await shell.run("ls -A /run /tmp")).output == "/run:\n\n/tmp:\n" + (
        f"{shell.root.parts[2]}\n" if shell.root.parts[1] == "tmp" else ""
    )


@works
@pytest.mark.parametrize(("line", "code", "signal"), [("exit 3", 3, None), ("kill -9 $$", 137, None)])
async def test_how_it_ended_is_told(line: str, code: int | None, signal: str | None, shell: Shell) -> None:
    """Our promise: exit codes pass; a signal inside is told as shells tell it, 128 and its number."""
    result = await shell.run(line)

    assert (result.exit_code, result.signal, result.timed_out) == (code, signal, False)


@works
@pytest.mark.parametrize("line", ["sleep 600", "trap '' TERM; sleep 600", "setsid sleep 600 & sleep 600"])
async def test_a_deadline_ends_all_that_runs_inside(line: str, shell: Shell) -> None:
    """Spec loop 1.11: nobody outlives the call, not even who left for a session of their own."""
    mark = f"600.{os.getpid()}1"

    result = await shell.run(line.replace("600", mark), timeout_s=0.5)

    assert result.timed_out
    assert not alive(mark)


@works
async def test_a_cancel_ends_all_that_runs_inside(shell: Shell) -> None:
    """Our promise: Stop is trusted."""
    mark = f"600.{os.getpid()}2"
    os.mkfifo(shell.root / "begun")
    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(shell.run, f"echo > begun; setsid sleep {mark} & sleep {mark}")
            await to_thread.run_sync((shell.root / "begun").read_bytes)
            group.cancel_scope.cancel()

    assert not alive(mark)


def alive(mark: str) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in line:
            found.append(line.decode(errors="replace"))
    return found


def test_without_the_program_a_person_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue "Acting with consent": a clear error when unavailable."""
    monkeypatch.setenv("PATH", "/nowhere")

    assert trouble_with(WRITES) == f"there is no bwrap on the PATH; {module.INSTALL}"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("#!/bin/sh\necho 'bwrap: no namespaces' >&2; exit 1", "bwrap fails here (bwrap: no namespaces)"),
        ("#!/bin/sh\nexit 1", "bwrap fails here (no words)"),
        ("#!/bin/sh\nexec sleep 600", "bwrap cannot be run: TimeoutExpired"),
    ],
)
def test_a_program_that_does_not_work_is_not_relied_on(
    script: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue "Acting with consent": detected by running it, never silently off."""
    program = tmp_path / "bwrap"
    program.write_text(script)
    program.chmod(0o755)
    monkeypatch.setattr(module, "PROBE_S", 1.0)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    assert str(trouble_with(WRITES)).startswith(words)


def test_a_sandbox_says_what_holds() -> None:
    """Our promise: who approves a command knows what it may do."""
    assert WRITES.words == "In a sandbox: writes only in the project, without network."
    assert replace(READS, network=True).words == "In a sandbox: writes nothing, with network."


def test_where_people_keep_keys_is_known(tmp_path: Path) -> None:
    """Our promise: masked by where a name really leads."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".ssh").symlink_to(tmp_path / "elsewhere")

    assert os.path.realpath(tmp_path / "elsewhere") in secrets_of(tmp_path)
