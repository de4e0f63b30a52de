"""Children: groups that end, groups that linger, and what is asked of each platform."""

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from agent_loop.workspace import children
from agent_loop.workspace.children import Children, Group


@pytest.fixture
def null() -> Iterator[int]:
    """A descriptor of the null device."""
    descriptor = os.open(os.devnull, os.O_RDWR)
    yield descriptor
    os.close(descriptor)


def start(made: Children, null: int, shell: str) -> Group:
    return made.start(("/bin/sh", "-c", shell), cwd="/", env={}, output=null)


def wait(group: Group) -> None:
    """Until the child has ended, by the system's own blocking wait."""
    group._process.wait(timeout=10)


def test_a_child_may_be_given_an_input(null: int) -> None:
    """The MCP room will speak with its children."""
    reading, writing = os.pipe()
    os.write(writing, b"7\n")
    os.close(writing)

    group = Children().start(
        ("/bin/sh", "-c", "read n; exit $n"), cwd="/", env={}, output=null, stdin=reading
    )
    os.close(reading)
    wait(group)

    assert (group.exit_code, group.ended(), group.gone()) == (7, True, True)


def test_a_group_that_was_gone_is_never_signalled_again(null: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 2 of children: its number may be a stranger's by now."""
    group = start(Children(), null, ":")
    wait(group)
    assert group.gone()
    monkeypatch.setattr(os, "killpg", lambda *_: pytest.fail("signalled"))

    group.signal(signal.SIGKILL)

    assert group.gone()


def test_a_group_nobody_may_signal_counts_as_gone(null: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """macOS answers so for zombies; Linux when somebody else's program is all that is left."""
    group = start(Children(), null, ":")
    wait(group)

    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "killpg", refused)

    assert group.gone()


def test_a_group_that_does_not_end_is_remembered_until_it_does(
    null: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 4 of children: a process may be stuck in the kernel."""
    made = Children()
    group = start(made, null, "exec sleep 60")
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    made.release(group)
    assert made._groups == {group}

    monkeypatch.undo()
    made.kill_all()
    wait(group)
    another = start(made, null, ":")
    wait(another)
    made.release(another)

    assert made._groups == set()


def test_without_a_process_list_a_group_that_can_be_signalled_lives(
    null: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """macOS has no /proc."""
    group = start(Children(), null, "sleep 60 & :")
    wait(group)

    def missing(_: str) -> list[str]:
        raise FileNotFoundError

    with monkeypatch.context() as patched:
        patched.setattr(os, "listdir", missing)
        assert not group.gone()

    assert not group.gone()
    assert not group.gone()
    group.signal(signal.SIGKILL)


def test_zombies_that_nobody_reaps_do_not_count(null: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers whose PID 1 reaps late, or never."""
    group = start(Children(), null, "sleep 60 & :")
    wait(group)
    assert not group.gone()

    monkeypatch.setattr(children, "_lives", lambda *_: False)

    assert group.gone()
    os.killpg(group._process.pid, signal.SIGKILL)


def test_orphans_that_fall_to_us_are_reaped(null: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As PID 1 of a container we inherit what a command left behind."""
    group = start(Children(), null, ":")
    wait(group)
    orphan = subprocess.Popen(["/bin/sh", "-c", ":"], start_new_session=True)
    os.waitid(os.P_PID, orphan.pid, os.WEXITED | os.WNOWAIT)
    monkeypatch.setattr(group._process, "pid", orphan.pid)

    assert group.gone()

    with pytest.raises(ChildProcessError):
        os.waitpid(orphan.pid, os.WNOHANG)
    orphan.wait()


def test_a_process_that_is_not_there_does_not_live() -> None:
    """A process may end between the listing and the look."""
    assert not children._lives(2**22 + 1, os.getpgid(0))
