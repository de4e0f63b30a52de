"""An ACP editor for tests: drives an agent server as a real child process over real stdio.

Owns the conversation, its transcript and every bounded wait. What is said and when belongs to the test,
or to a golden's `player`; the process itself belongs to `child`.

1. Each line of stdout must be a JSON object with `"jsonrpc": "2.0"`; anything else fails the next wait.
2. A line enters the transcript under one lock, before it is written or as it is read, so an answer never
   stands before its question.
3. Nothing sleeps: all waits hang on one condition, which the reading threads notify, and have a deadline.
4. `sync()` is a round trip with a request no agent knows. The agent reads lines in order and writes
   through one ordered queue, so when the refusal is here, everything the agent had to say about the
   lines before it is here too. The pair is kept out of the transcript.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.doubles.child import Child, ChildFailure
from tests.doubles.transcript import Frame, Line, is_update, matches, request_id_key, show

__all__ = ["Editor", "EditorError"]

_SYNC = "test-sync-"


class EditorError(AssertionError):
    """A wait ended without what it waited for; the message shows the transcript and stderr."""


class Editor:
    """The editor's end of one connection; `start()` again after the process ended is a restart.

    Args:
        argv: The agent server's command line.
        timeout_s: Longest single wait, in seconds.
        changed: The condition all waits hang on; pass one to wait for other sources together.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        timeout_s: float = 10.0,
        changed: threading.Condition | None = None,
    ) -> None:
        self.argv, self.cwd, self.env, self.timeout_s = list(argv), cwd, dict(env), timeout_s
        self.changed = changed or threading.Condition()
        self.transcript: list[Line] = []
        self.responses: dict[str, Frame] = {}
        self.stderr = ""
        self.problems: list[str] = []
        self.child: Child | None = None
        self.has_exited = False
        self._stdout_open = False
        self._mid_line = False
        self._last_id = 0
        self._last_sync = 0
        self._synced: set[str] = set()
        self._cursors: dict[str | None, int] = {}
        self._taken: set[int] = set()

    # -- the process

    def start(self) -> None:
        """Start the server, or start it again after it ended."""
        self._stdout_open, self._mid_line, self.has_exited = True, False, False
        self.child = Child(
            self.argv, cwd=self.cwd, env=self.env, on_line=self._on_line, on_stderr=self._on_stderr
        )

    @property
    def is_open(self) -> bool:
        """True while the server can be talked to: its stdin is not closed, its stdout has not ended."""
        return self.child is not None and self.child.takes_input and self._stdout_open

    def eof(self) -> None:
        """Close the server's stdin."""
        assert self.child is not None
        self._record(Line("editor", event={"event": "eof"}))
        self.child.close_stdin()

    def signal(self, name: str) -> None:
        """Send a signal by its short name: TERM, INT, KILL."""
        assert self.child is not None
        self._record(Line("editor", event={"event": "signal", "name": name}))
        self.child.send_signal(name)

    def wait_exit(self) -> int:
        """Wait for the process and the rest of its output; the exit code, negative for a signal."""
        assert self.child is not None
        try:
            code = self.child.wait(self.timeout_s)
        except ChildFailure as failure:
            raise self._failure(str(failure)) from None

        self.has_exited = True
        self._record(Line("agent", event={"event": "exit", "code": code}))
        return code

    def close(self) -> None:
        """End whatever is left. For clean-up: call it whether or not the test went well."""
        if self.child is not None:
            self.child.kill(self.timeout_s)

    # -- what the editor says

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def request(self, method: str, params: Frame | None = None) -> int:
        """Write one request; its id."""
        number = self.next_id()
        self.write([{"id": number, "method": method, "params": params or {}}])
        return number

    def call(self, method: str, params: Frame | None = None) -> Frame:
        """Write one request and wait for its response frame."""
        return self.wait_response(self.request(method, params))

    def notify(self, method: str, params: Frame | None = None) -> None:
        self.write([{"method": method, "params": params or {}}])

    def answer(self, number: object, *, result: Any = None, error: Frame | None = None) -> None:
        """Answer a request of the agent."""
        self.write(
            [{"id": number, "error": error} if error is not None else {"id": number, "result": result}]
        )

    def write(self, frames: Sequence[Frame]) -> None:
        """Write frames, completed with `jsonrpc`, as one write."""
        self.write_lines([Line("editor", frame={"jsonrpc": "2.0", **frame}) for frame in frames])

    def write_lines(self, lines: Sequence[Line]) -> None:
        """Write frames and raw lines, in order, as one write; each gets its newline."""
        texts = [json.dumps(line.frame) if line.raw is None else line.raw for line in lines]
        self._record(*lines)
        self._write("".join(f"{text}\n" for text in texts).encode())

    def write_bytes(self, data: bytes, split: int | None = None) -> None:
        """Write bytes as they are, in two writes when `split` says after how many."""
        self._record(Line("editor", raw=data.decode(errors="backslashreplace")))
        for piece in (data,) if split is None else (data[:split], data[split:]):
            self._write(piece)
        self._mid_line = not data.endswith(b"\n")

    # -- what the editor waits for

    def wait_response(self, number: object) -> Frame:
        """Wait for the response to a request; its frame, result or error."""
        key = request_id_key(number)
        self.wait_until(lambda: key in self.responses, f"the response to request {number!r}")
        frame = self.responses[key]
        index = next(i for i, line in enumerate(self.transcript) if line.frame is frame)
        for session, cursor in self._cursors.items():
            self._cursors[session] = max(cursor, index)
        return frame

    def wait_update(self, pattern: Frame, session: str | None = None) -> Frame:
        """Wait for a session/update whose `update` holds `pattern`; looks on from the last wait's find."""
        start = self._cursors.setdefault(session, 0)
        what = f"an update like {json.dumps(pattern)} of session {session or 'any'}"
        index = self._wait_line(
            lambda line: is_update(line, session) and matches(pattern, line.update), what, start
        )
        self._cursors[session] = index + 1
        return self.transcript[index].frame or {}

    def wait_request(self, method: str) -> Frame:
        """Wait for a request of the agent that no earlier wait took; its frame."""
        index = self._wait_line(
            lambda line: line.sender == "agent" and line.is_request and line.method == method,
            f"a request {method}",
        )
        self._taken.add(index)
        return self.transcript[index].frame or {}

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until `condition` holds; it is looked at whenever a line or an event arrives."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.problems or condition() or not self._stdout_open, self.timeout_s
            )
            if self.problems:
                raise self._failure("; ".join(self.problems))
            if not condition():
                raise self._failure(f"waited in vain for {what}")

    def sync(self) -> None:
        """Wait until the agent has read all that was written and all it said about it is here (rule 4)."""
        if not self.is_open or self._mid_line:
            return

        self._last_sync += 1
        key = f"{_SYNC}{self._last_sync}"
        self._write(json.dumps({"jsonrpc": "2.0", "id": key, "method": "_test/sync"}).encode() + b"\n")
        self.wait_until(
            lambda: key in self._synced, "the refusal of the unknown method _test/sync (a round trip)"
        )

    # -- private

    def _wait_line(self, wanted: Callable[[Line], bool], what: str, start: int = 0) -> int:
        found: list[int] = []

        def look() -> bool:
            rest = range(start, len(self.transcript))
            found[:] = [i for i in rest if i not in self._taken and wanted(self.transcript[i])][:1]
            return bool(found)

        self.wait_until(look, what)
        return found[0]

    def _write(self, data: bytes) -> None:
        assert self.child is not None
        try:
            self.child.write(data, self.timeout_s)
        except ChildFailure as failure:
            raise self._failure(str(failure)) from None

    def _record(self, *lines: Line) -> None:
        with self.changed:
            self.transcript.extend(lines)
            self.changed.notify_all()

    def _on_line(self, data: bytes | None) -> None:
        with self.changed:
            if data is None:
                self._stdout_open = False
            else:
                self._take(data)
            self.changed.notify_all()

    def _take(self, data: bytes) -> None:
        try:
            frame = json.loads(data)
        except ValueError:
            frame = None
        if not isinstance(frame, dict) or frame.get("jsonrpc") != "2.0":
            self.problems.append(f"stdout carried a line that is no JSON-RPC object: {data[:200]!r}")
            self.transcript.append(Line("agent", raw=data.decode(errors="backslashreplace").rstrip("\n")))
            return

        if "method" not in frame and str(frame.get("id")).startswith(_SYNC):
            self._synced.add(frame["id"])
            return

        self.transcript.append(Line("agent", frame=frame))
        if "method" not in frame:
            self.responses.setdefault(request_id_key(frame.get("id")), frame)

    def _on_stderr(self, data: bytes) -> None:
        self.stderr += data.decode(errors="backslashreplace")

    def _failure(self, what: str) -> EditorError:
        code = self.child.exit_code if self.child else None
        said = f"transcript so far:\n{show(self.transcript)}\nstderr:\n{self.stderr or '(empty)'}"
        return EditorError(f"{what}\nexit code: {code}\n{said}")
