"""The wire between the harness and the scripted provider: who begins a model call, holds, hangs, ends.

Owns the loopback socket, the script's lines and which of them are used, and what each model call is
doing now. When an editor frame may be written is `player`'s business; it asks here.

The protocol
    The harness listens on 127.0.0.1; `[providers.scripted] control = "127.0.0.1:PORT"` names the port.
    The provider connects once, at its first model call, and keeps the connection until the process ends.
    Both sides write one JSON object per line (UTF-8, "\\n"). `call` is a number the provider gives each
    model call, unique in its process. With `control` set the provider never picks a line itself: it asks.

    provider -> harness
        {"event": "begin", "call": 1, "session": "<session id>"}   a call wants a line; wait for the answer
        {"event": "hold", "call": 1, "name": "go"}                 at {"hold": "go"}; wait for the release
        {"event": "hang", "call": 1}                               at {"hang": true}; until cancelled
        {"event": "end", "call": 1}                                finished, raised or cancelled (`finally`)
        {"event": "unexpected", "call": 1, "message": "..."}       an `expect` failed, a line is malformed
    harness -> provider
        {"call": 1, "take": 0}             use line 0 of the script (0 = first line of the file)
        {"call": 1, "refuse": "..."}       no line is left for this session: raise invalid_request with it
        {"call": 1, "release": "go"}       go on after that hold

    Order matters in one place: `hold`, `hang` and `end` are sent after the chunks before them were handed
    over, which a generator does by itself (it is resumed only when its last chunk was consumed).
    After `unexpected` the provider raises invalid_request, then sends `end`. A cancelled call may be waiting
    for an answer or a release: it just sends `end`, and drops what still comes for that call.

    So the provider knows nothing of numbering, restarts, leftovers or the probe session: `"session": n`
    in a script line is the nth session id created or loaded in the golden, and only the harness sees that.
    Without `control` the provider numbers ids by their first call and takes the first unused line itself.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["PROBE", "Call", "Control"]

PROBE = "probe"
"""The `session` of the script line that answers the harness's own last prompt (standing check 4)."""


@dataclass(slots=True)
class Call:
    """One model call that has begun and not ended."""

    number: int
    session: str
    state: Literal["emitting", "held", "hung"] = "emitting"
    hold: str | None = None
    doomed: bool = False


class Control:
    """Listens for the scripted provider; hands out script lines; knows which calls are emitting."""

    def __init__(self, script: list[dict[str, Any]], changed: threading.Condition) -> None:
        self.script = script
        self.changed = changed
        self.sessions: list[str] = []
        self.probe_session: str | None = None
        self.faults: list[str] = []
        self.version = 0
        self._used: set[int] = set()
        self._calls: dict[int, Call] = {}
        self._connection: socket.socket | None = None
        self._closing = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve, name="golden-control", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def number(self, session: str) -> int:
        """The golden's number of a session id, given at its first sight."""
        with self.changed:
            if session not in self.sessions:
                self.sessions.append(session)
            return self.sessions.index(session) + 1

    def calls(self, session: str | None = None) -> list[Call]:
        """Calls begun and not ended, of one session or of all."""
        with self.changed:
            return [call for call in self._calls.values() if session in (None, call.session)]

    def held(self, name: str) -> Call | None:
        return next((c for c in self.calls() if c.state == "held" and c.hold == name), None)

    def doom(self, session: str) -> None:
        """A cancel was written: the calls of this session may no longer count as a resting place."""
        for call in self.calls(session):
            call.doomed = True

    def release(self, name: str) -> None:
        """Let the call held under `name` go on."""
        call = self.held(name)
        assert call is not None, f"no call is held under {name!r}"
        call.state, call.hold = "emitting", None
        self._send({"call": call.number, "release": name})

    def leftovers(self) -> list[str]:
        """The script lines nobody asked for (the probe's own line is not counted)."""
        return [
            f"line {index + 1}: {json.dumps(line)}"
            for index, line in enumerate(self.script)
            if index not in self._used and line.get("session") != PROBE
        ]

    def close(self) -> None:
        self._closing = True
        if self._connection is not None:
            with contextlib.suppress(OSError):  # it may be gone already
                self._connection.shutdown(socket.SHUT_RDWR)
        with socket.create_connection(self._listener.getsockname()):
            pass  # wakes accept(): closing a socket another thread waits on does not, everywhere
        self._thread.join(timeout=5)
        self._listener.close()

    def _serve(self) -> None:
        while not self._closing:
            connection, _ = self._listener.accept()
            with connection, connection.makefile("rb") as lines:
                self._connection = connection
                self._read(lines)
                self._connection = None

            with self.changed:
                self._calls.clear()
                self._tell()

    def _read(self, lines: Any) -> None:
        try:
            for line in lines:
                self._on_event(json.loads(line))
        except OSError:
            pass  # the process was killed: its calls are over, which the caller notes
        except (ValueError, KeyError, TypeError) as error:
            self.faults.append(f"the provider broke the control protocol: {error!r}")

    def _on_event(self, event: dict[str, Any]) -> None:
        number = event["call"]
        with self.changed:
            match event["event"]:
                case "begin":
                    self._calls[number] = Call(number, event["session"])
                    self._send(self._pick(number, event["session"]))
                case "hold":
                    self._calls[number].state, self._calls[number].hold = "held", event["name"]
                case "hang":
                    self._calls[number].state = "hung"
                case "end":
                    self._calls.pop(number, None)
                case "unexpected":
                    self.faults.append(f"the model was called in an unexpected way: {event['message']}")
                case other:
                    self.faults.append(f"the provider sent an unknown event {other!r}")
            self._tell()

    def _pick(self, call: int, session: str) -> dict[str, Any]:
        wanted: int | str = PROBE if session == self.probe_session else self.number(session)
        for index, line in enumerate(self.script):
            if index not in self._used and line.get("session", 1) == wanted:
                self._used.add(index)
                return {"call": call, "take": index}

        refusal = f"the script has no line left for session {wanted}"
        self.faults.append(refusal)
        return {"call": call, "refuse": refusal}

    def _send(self, message: dict[str, Any]) -> None:
        connection = self._connection
        if connection is None:
            return

        with contextlib.suppress(OSError):  # the provider's process is gone; the editor's side says so
            connection.sendall(json.dumps(message).encode() + b"\n")

    def _tell(self) -> None:
        self.version += 1
        self.changed.notify_all()
