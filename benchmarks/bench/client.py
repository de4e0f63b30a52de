"""The client: starts an agent on pipes, asks, and keeps what came in raw blocks until it is looked at.

It must never be what the agent waits for, so while an answer is awaited it only counts lines and looks for
ids; what it heard is parsed afterwards, and judged by `said`.
"""

import os
import select
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from bench.agents import Launch

BLOCK_BYTES: Final = 1 << 20
TIMEOUT_S: Final = 60.0
_ID: Final = b'"id":'

Json = dict[str, Any]
now = time.perf_counter


class Wrong(Exception):
    """The agent did not do what is measured, so the figure would mean nothing."""


@dataclass(frozen=True)
class Answer:
    """The answer to one request, and when the block with its last byte had been read."""

    at: float
    message: Json

    @property
    def result(self) -> Json:
        if "result" not in self.message:
            raise Wrong(f"an error was answered: {self.message.get('error')}")
        return self.message["result"] or {}


@dataclass(frozen=True)
class Line:
    """One line the agent wrote, and when its block had been read."""

    at: float
    message: Json


class Client:
    """One running agent.

    Attributes:
        pid: The agent's process.
        cwd: Where its sessions work.
        started: When it was started.
        lines: How many lines came since `heard` was last called.
    """

    def __init__(self, launch: Launch) -> None:
        self._errors: Path = launch.errors
        with self._errors.open("wb") as errors:
            self.started = now()
            self._process = subprocess.Popen(
                launch.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=launch.env,
                cwd=launch.cwd,
                bufsize=0,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.pid = self._process.pid
        self.lines = 0
        self.cwd = str(launch.cwd)
        self._in, self._out = self._process.stdin, self._process.stdout
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._rest = b""
        self._blocks: list[tuple[float, bytes]] = []
        self._answers: dict[int, Answer] = {}
        self._next_id = 0

    def initialize(self) -> Answer:
        """Introduce ourselves; we offer nothing an agent could call."""
        params = {"protocolVersion": 1, "clientCapabilities": {}}
        return self.wait(self.ask("initialize", params))

    def new_session(self) -> tuple[str, Answer]:
        """Open a session; its id, and the answer."""
        answer = self.wait(self.ask("session/new", {"cwd": self.cwd, "mcpServers": []}))
        return answer.result["sessionId"], answer

    def load_session(self, session: str) -> None:
        """Have a stored session replayed, and forget the replay."""
        self.result(self.ask_load(session))
        self.heard()

    def ask_load(self, session: str) -> int:
        """Have a stored session replayed; the id of the request."""
        return self.ask("session/load", {"sessionId": session, "cwd": self.cwd, "mcpServers": []})

    def prompt(self, session: str, deltas: int, pause_ms: float = 0) -> int:
        """Ask for that many deltas; the id of the request."""
        return self.prompts([session], deltas, pause_ms)[0]

    def prompts(self, sessions: list[str], deltas: int, pause_ms: float = 0) -> list[int]:
        """The same prompt in several sessions, in one write."""
        text = f"bench deltas={deltas} pause_ms={pause_ms}"
        asked = [
            ("session/prompt", {"sessionId": it, "prompt": [{"type": "text", "text": text}]})
            for it in sessions
        ]
        return self._send(asked)

    def cancel(self, session: str) -> None:
        """Cancel the session's prompt."""
        message = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
        self._write(orjson.dumps(message) + b"\n")

    def ask(self, method: str, params: Json) -> int:
        """Send a request; its id."""
        return self._send([(method, params)])[0]

    def wait(self, request: int, timeout_s: float = TIMEOUT_S) -> Answer:
        """Read until the request is answered."""
        deadline = now() + timeout_s
        while request not in self._answers:
            self._read(deadline)
        return self._answers[request]

    def result(self, request: int) -> Json:
        """Read until the request is answered; what was answered."""
        return self.wait(request).result

    def answered(self, request: int) -> bool:
        """Whether the answer has come already."""
        return request in self._answers

    def read_lines(self, count: int, request: int) -> None:
        """Read until that many more lines came; the request they belong to must still be open then."""
        deadline, goal = now() + TIMEOUT_S, self.lines + count
        while self.lines < goal and request not in self._answers:
            self._read(deadline)
        if request in self._answers:
            raise Wrong("the stream was over before it could be disturbed")

    def read_for(self, seconds: float) -> None:
        """Read whatever comes in that time."""
        end = now() + seconds
        while (left := end - now()) > 0:
            if self._poll.poll(left * 1000):
                self._read(end)

    def heard(self) -> list[Line]:
        """Every line since the last call, parsed, in order; answers included."""
        blocks, self._blocks, self.lines = self._blocks, [], 0
        return [
            Line(at, orjson.loads(line))
            for at, block in blocks
            for line in block.splitlines()
            if line.strip()
        ]

    def leave(self) -> float:
        """Close the agent's stdin; seconds until it had ended."""
        began = now()
        self._in.close()
        try:
            code = self._process.wait(10)
        except subprocess.TimeoutExpired:
            raise Wrong("it did not end within 10 s of its input") from None
        if code:
            raise Wrong(f"it ended with status {code}{self._last_words()}")
        return now() - began

    def close(self) -> None:
        """End the agent, whatever state it is in; may be called again."""
        self._in.close()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._out.close()

    def _send(self, asked: list[tuple[str, Json]]) -> list[int]:
        ids = [self._next_id + at + 1 for at in range(len(asked))]
        self._next_id = ids[-1]
        messages = [
            {"jsonrpc": "2.0", "id": key, "method": method, "params": params}
            for key, (method, params) in zip(ids, asked, strict=True)
        ]
        self._write(b"".join(orjson.dumps(message) + b"\n" for message in messages))
        return ids

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._in.fileno(), view) :]

    def _read(self, deadline: float) -> None:
        if not self._poll.poll(max(0.0, deadline - now()) * 1000):
            raise Wrong(f"nothing came any more, and a request is not answered{self._last_words()}")
        block = os.read(self._out.fileno(), BLOCK_BYTES)
        at = now()
        if not block:
            raise Wrong(f"it closed its output{self._last_words()}")
        data = self._rest + block
        end = data.rfind(b"\n") + 1
        whole, self._rest = data[:end], data[end:]
        self._blocks.append((at, whole))
        self.lines += whole.count(b"\n")
        if _ID in whole:
            self._look_for_answers(at, whole)

    def _look_for_answers(self, at: float, whole: bytes) -> None:
        for line in whole.splitlines():
            if _ID in line:
                message = orjson.loads(line)
                if "method" in message:
                    raise Wrong(f"it asked for {message['method']}, which nothing here needs")
                self._answers[message["id"]] = Answer(at, message)

    def _last_words(self) -> str:
        words = self._errors.read_text("utf-8", "replace").strip().splitlines()[-1:]
        return f"; its last words: {words[0][:200]}" if words else ""
