"""A real child process with three pipes: written without blocking for ever, read by threads, always reaped.

Owns the process and its bytes. What the lines mean belongs to `editor`.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

__all__ = ["Child", "ChildFailure"]


class ChildFailure(Exception):
    """The process did not take its input, or did not end, in time."""


class Child:
    """One process in a session of its own.

    Args:
        on_line: Called by a reading thread with each line of stdout, and once with None at its end.
        on_stderr: Called by a reading thread with each line of stderr.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        on_line: Callable[[bytes | None], None],
        on_stderr: Callable[[bytes], None],
    ) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            list(argv), cwd=cwd, env=dict(env), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )
        stdin, stdout, stderr = self._process.stdin, self._process.stdout, self._process.stderr
        assert stdin is not None
        assert stdout is not None
        assert stderr is not None
        os.set_blocking(stdin.fileno(), False)
        self._stdin: IO[bytes] = stdin
        self._outputs: list[IO[bytes]] = [stdout, stderr]
        self._readers = [
            threading.Thread(target=_read, args=(stdout, on_line, lambda: on_line(None)), daemon=True),
            threading.Thread(target=_read, args=(stderr, on_stderr, lambda: None), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._process.poll()

    @property
    def takes_input(self) -> bool:
        return not self._stdin.closed

    def write(self, data: bytes, timeout_s: float) -> None:
        """Write all of `data`, or raise ChildFailure when the child does not take it."""
        deadline = time.monotonic() + timeout_s
        rest = memoryview(data)
        while rest:
            _, writable, _ = select.select([], [self._stdin], [], max(0.0, deadline - time.monotonic()))
            if not writable:
                raise ChildFailure("the server stopped reading its stdin")
            try:
                rest = rest[os.write(self._stdin.fileno(), rest) :]
            except BrokenPipeError:
                raise ChildFailure("the server closed its stdin") from None

    def close_stdin(self) -> None:
        self._stdin.close()

    def send_signal(self, name: str) -> None:
        """Send a signal by its short name, such as TERM."""
        self._process.send_signal(signal.Signals[f"SIG{name}"])

    def wait(self, timeout_s: float) -> int:
        """Wait for the end of the process and of its output; the exit code."""
        try:
            code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise ChildFailure("the server did not exit") from None

        for reader in self._readers:
            reader.join(timeout_s)
            if reader.is_alive():
                raise ChildFailure("the server exited, yet somebody still holds its stdout or stderr open")

        self._close_pipes()
        return code

    def kill(self, timeout_s: float) -> None:
        """End the process and whatever it left in its group; harmless when all is over."""
        with contextlib.suppress(ProcessLookupError):  # nobody is left, as it should be
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(timeout_s)
        for reader in self._readers:
            reader.join(timeout_s)
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._stdin, *self._outputs):
            pipe.close()


def _read(stream: IO[bytes], on_line: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
    for line in stream:
        on_line(line)
    on_end()
