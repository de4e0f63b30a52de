"""The editor's side of the demo: one child process, one question at a time, every wait bounded.

Only the process that was started here is ever ended here.
"""

import json
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Final, NamedTuple

from acp_server.demo_frames import Frame, Frames
from acp_server.demo_screen import Screen

TERM_GRACE_S: Final = 2.0
"""A server that is told to go ends its commands first; one that is killed cannot."""


class DemoFailed(Exception):
    """The conversation cannot go on; the text says why."""


class Leaving(NamedTuple):
    """How the server went: its exit status, and how long after the end of its input."""

    code: int
    seconds: float


class DemoEditor:
    """Talks to one server; leaving the context ends it if it is still there."""

    def __init__(
        self,
        argv: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        frames: Frames,
        screen: Screen,
        wait_s: float,
    ) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(list(argv), cwd=cwd, env=dict(environ), stdin=pipe, stdout=pipe)
        self._frames = frames
        self._screen = screen
        self._wait_s = wait_s
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        assert self._process.stdout is not None
        threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True).start()

    def __enter__(self) -> "DemoEditor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(TERM_GRACE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._close_stdin()

    def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask, show and answer what comes meanwhile, and return the result.

        Raises:
            DemoFailed: The answer is an error, does not come in time, or the server went.
        """
        number = self._frames.ask(method)
        self._write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        deadline = time.monotonic() + self._wait_s
        while True:
            frame = self._frames.see(self._next(deadline, f"the answer to {method}"))
            if frame is None:
                continue
            if "method" in frame:
                self._on_frame(frame)
            elif "error" in frame:
                raise DemoFailed(f"{method} was answered with an error: {frame['error']['message']}")
            else:
                return frame["result"] if isinstance(frame["result"], dict) else {}

    def open_session(self, cwd: str) -> str:
        """A session in `cwd`; its id.

        Raises:
            DemoFailed: See `call`; or there is no id in the answer.
        """
        session = self.call("session/new", {"cwd": cwd, "mcpServers": []}).get("sessionId")
        if not isinstance(session, str):
            raise DemoFailed("the answer to session/new names no session")
        self._frames.session = session
        return session

    def leave(self, limit_s: float) -> Leaving:
        """Close the server's input and wait for its end; what it still says is looked at too.

        Raises:
            DemoFailed: It stays for more than twice `limit_s`.
        """
        began = time.monotonic()
        self._close_stdin()
        self._wait_s = 2 * limit_s
        deadline = began + self._wait_s
        while line := self._next(deadline, f"the server to exit, which it should within {limit_s:g} s", True):
            self._frames.see(line)
        try:
            code = self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"the server closed its output but runs on after {self._wait_s:g} s") from None
        return Leaving(code, time.monotonic() - began)

    def _on_frame(self, frame: Frame) -> None:
        if "id" not in frame:
            self._screen.update(frame["params"]["update"], self._frames.cards)
            return
        permission = self._frames.permission(frame)
        self._screen.ask(permission)
        outcome = {"outcome": "selected", "optionId": permission.allow["optionId"]}
        self._write({"jsonrpc": "2.0", "id": frame["id"], "result": {"outcome": outcome}})
        self._screen.say("you", permission.allow["name"])

    def _next(self, deadline: float, what: str, may_end: bool = False) -> bytes:
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise DemoFailed(f"waited {self._wait_s:g} s in vain for {what}") from None
        if not line and not may_end:
            raise DemoFailed(f"the server ended before {what}")
        return line

    def _write(self, frame: Frame) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(frame).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise DemoFailed(
                f"the server no longer reads: {frame.get('method', 'an answer')} was lost"
            ) from None

    def _close_stdin(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it went first; its exit status tells
            self._process.stdin.close()


def _read(stream: IO[bytes], lines: "queue.SimpleQueue[bytes]") -> None:
    """Hand over each line, then an empty one at the end."""
    with stream:
        for line in stream:
            lines.put(line)
    lines.put(b"")
