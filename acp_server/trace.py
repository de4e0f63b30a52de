"""`--trace FILE`: all that was said on the connection, and all a model said, one JSON object a line.

    {"from": "server", "trace": 1, "version": …, "agent": {settings that differ from the defaults}}
    {"from": "editor" | "agent", "frame": …}       or "raw" for a line that is no JSON
    {"from": "editor", "event": "eof"}             it left, or the server was told to
    {"from": "model", "session": …, "call": n, "request": {"last_user": …, "tools": [names]}}
    {"from": "model", "session": …, "call": n, "chunk": …}
    {"from": "model", "session": …, "call": n, "end": END}

END is {"finish": kind or null}, {"error": {kind, message, …}} or {"cancelled": true}.

Rules.
1. The order is the order of things in the server; the caller only queues, a thread does the rest.
2. Secrets are left out, see `trace_secrets`.
3. A file that cannot be written, or written fast enough, costs one warning in the log and the rest of
   the trace: a hole in it would tell a wrong story.
"""

import json
import logging
import os
import queue
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import orjson

from acp_server.methods.initialize import own_version
from acp_server.rpc.peer import LineSink
from acp_server.trace_secrets import raw_without_secrets, secrets_in, without_secrets
from agent_loop import Chunk, Finish, Loaded, ModelRequest, ProviderError, chunk_to_json, text_of

log = logging.getLogger(__name__)

QUEUE_ROWS: Final = 100_000
FLUSH_S: Final = 1.0
FORMAT: Final = 1

Row = dict[str, Any]


def open_trace(path: Path, loaded: Loaded, environ: Mapping[str, str]) -> "Trace":
    """A trace of a server with these settings."""
    named = [provider.api_key_env for provider in loaded.settings.providers.values() if provider.api_key_env]
    changed = loaded.settings.agent.model_dump(
        include={"permission_mode", "max_steps"}, exclude_defaults=True
    )
    trace = Trace(path, secrets_in(environ, named))
    trace.put(lambda: {"from": "server", "trace": FORMAT, "version": own_version(), "agent": changed})
    return trace


class Trace:
    """One trace file, written anew."""

    def __init__(self, path: Path, secrets: Sequence[str] = (), *, queue_rows: int = QUEUE_ROWS) -> None:
        self._path = path
        self._secrets = secrets
        self._rows: queue.Queue[Callable[[], Row] | None] = queue.Queue(queue_rows)
        self._over = False
        self._calls = 0
        self._thread = threading.Thread(target=self._run, name="trace", daemon=True)
        self._thread.start()

    def listen(self, on_line: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """`on_line`, which sees each line of the editor once it is noted."""

        def heard(line: bytes) -> None:
            self.put(partial(self._line_row, "editor", line))
            on_line(line)

        return heard

    def sink(self, behind: LineSink) -> LineSink:
        """What the agent writes to, so that each line is noted before `behind` gets it."""
        return _TracedSink(self, behind)

    def say(self, line: bytes) -> None:
        """Note one line of the agent."""
        self.put(partial(self._line_row, "agent", line))

    def end(self) -> None:
        """Note that the connection is over; what the agent still does, it does by itself."""
        self.put(lambda: {"from": "editor", "event": "eof"})

    def around_model(
        self, request: ModelRequest, then: Callable[[ModelRequest], AsyncIterator[Chunk]]
    ) -> AsyncIterator[Chunk]:
        """Stand around `llm/stream` and note every chunk, and how the call ended."""
        return self._watched(request, then(request))

    def put(self, row: Callable[[], Row]) -> None:
        """Queue what makes the next row; never waits and never raises."""
        if self._over:
            return
        try:
            self._rows.put_nowait(row)
        except queue.Full:
            self._give_up("more is said than can be written")

    def close(self) -> None:
        """Write what is queued, for FLUSH_S at most."""
        with suppress(queue.Full):
            self._rows.put(None, timeout=FLUSH_S)
        self._thread.join(FLUSH_S)

    async def _watched(self, request: ModelRequest, chunks: AsyncIterator[Chunk]) -> AsyncIterator[Chunk]:
        self._calls += 1
        place = {"from": "model", "session": request.session_id, "call": self._calls}
        self.put(lambda: {**place, "request": _request_row(request)})
        end: Row = {"cancelled": True}
        try:
            # Every provider is a generator, though a middleware may only promise an iterator.
            async with aclosing(chunks):  # type: ignore[type-var]
                async for chunk in chunks:
                    if isinstance(chunk, Finish):
                        end = {"finish": chunk.kind}
                    self.put(partial(_chunk_row, place, chunk))
                    yield chunk
            if "cancelled" in end:
                end = {"finish": None}
        except Exception as error:
            end = {"error": _error_row(error)}
            raise
        finally:
            self.put(lambda: {**place, "end": end})

    def _run(self) -> None:
        """The thread: opens the file too, which may block (a named pipe)."""
        try:
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(fd, "wb") as file:
                while (make := self._rows.get()) is not None:
                    row = without_secrets(make(), self._secrets)
                    file.write(json.dumps(row, separators=(",", ":")).encode() + b"\n")
                    if self._rows.empty():
                        file.flush()
        except Exception as error:
            self._give_up(str(error))

    def _line_row(self, sender: str, line: bytes) -> Row:
        try:
            return {"from": sender, "frame": orjson.loads(line)}
        except ValueError:
            text = line.decode(errors="backslashreplace").removesuffix("\n")
            return {"from": sender, "raw": raw_without_secrets(text, self._secrets)}

    def _give_up(self, why: str) -> None:
        if not self._over:
            self._over = True
            log.warning("the trace %s ends here: %s", self._path, why)


class _TracedSink:
    def __init__(self, trace: Trace, behind: LineSink) -> None:
        self._trace = trace
        self._behind = behind

    def write(self, line: bytes) -> None:
        self._trace.say(line)
        self._behind.write(line)


def _request_row(request: ModelRequest) -> Row:
    texts = (text_of(message.content) for message in reversed(request.messages))
    return {
        "last_user": next(filter(None, texts), ""),
        "tools": [tool.name for tool in request.tools],
    }


def _chunk_row(place: Row, chunk: Chunk) -> Row:
    return {**place, "chunk": chunk_to_json(chunk)}


def _error_row(error: Exception) -> Row:
    if not isinstance(error, ProviderError):
        return {"kind": "unknown", "message": str(error) or type(error).__name__}
    row: Row = {"kind": error.kind, "message": str(error)}
    if error.status is not None:
        row["status"] = error.status
    if error.retry_after_s is not None:
        row["retryAfter"] = error.retry_after_s
    return row
