"""What no editor can provoke, and must be right all the same: a server that fails, and one that is stuck."""

import faulthandler
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from acp_server import serve
from acp_server.bridge.connection import Connection
from agent_loop import Loaded, load_settings
from agent_loop.workspace.children import Children


class Exits(list[int]):
    """The exit codes asked for, in place of the process's end."""


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> Iterator[Exits]:
    """`os._exit`, the watchdog and the signal handlers of this process stay out of it."""
    seen = Exits()
    monkeypatch.setattr(os, "_exit", seen.append)
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda *_, **__: None)
    monkeypatch.setattr(sys, "setswitchinterval", lambda _: None)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield seen
    for number, handler in before.items():
        signal.signal(number, handler)


def loaded(folder: Path) -> Loaded:
    return load_settings(flags={}, environ={}, state_dir=folder)


def test_a_server_that_fails_says_so_in_its_log_and_in_its_exit_code(
    exits: Exits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Contracts 13: full log in the state directory, silence on stderr."""

    def explode(*_: Any, **__: Any) -> None:
        raise RuntimeError("the bug")

    monkeypatch.setattr(anyio, "run", explode)

    serve.serve_stdio(0, 1, loaded(tmp_path), {})

    assert exits == [1]
    assert "the bug" in (tmp_path / "log" / "acp-server.log").read_text()
    assert capfd.readouterr() == ("", "")


async def test_sessions_that_do_not_end_in_time_are_given_up(
    exits: Exits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Contracts 13: the end has a deadline, whatever hangs."""

    async def stuck(_: Connection) -> None:
        await anyio.sleep_forever()

    monkeypatch.setattr(Connection, "close", stuck)
    monkeypatch.setattr(serve, "SHUTDOWN_S", 0.01)
    reading, writing = os.pipe()
    os.close(writing)
    out = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)

    with anyio.fail_after(5):
        await serve._serve(reading, out, loaded(tmp_path / "state"), {}, None)

    assert "did not end within" in caplog.text
    os.close(out)


async def test_the_second_signal_kills_what_runs_and_leaves_at_once(exits: Exits) -> None:
    """Contracts 13: a second signal kills the groups and exits."""
    killed: list[str] = []

    class Running(Children):
        def kill_all(self) -> None:
            killed.append("all")

    class Workspaces:
        children = Running()

    class Harness:
        workspaces = Workspaces()

    stop = anyio.Event()
    serve._on_signals(stop, Harness())  # type: ignore[arg-type]
    handle: Any = signal.getsignal(signal.SIGTERM)

    handle(signal.SIGTERM, None)
    with anyio.fail_after(5):
        await stop.wait()
    assert (killed, exits) == ([], [])
    handle(signal.SIGINT, None)

    assert (killed, exits) == (["all"], [128 + signal.SIGINT])
