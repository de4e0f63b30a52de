"""Plays the steps of `when.jsonl`, and writes nothing while that would be a race.

Owns the meaning of each step and the order in which things are done. The connection belongs to
`tests.doubles.editor`, the model's side to `control`, files and processes to `runner`.

The steps
    {"send": METHOD, "params": {...}, "as": "p1"}   a request; `as` names it for later steps
    {"notify": METHOD, "params": {...}}             a notification
    {"raw": TEXT}                                   a line as it is; its newline is added
    {"bytes": TEXT, "split": N}                     bytes as they are, in two writes after N bytes
    {"together": [send | notify | raw | answer …]}  several of these as one write
    {"wait": {"response": "p1"}}                    until that request is answered
    {"wait": {"update": {...}, "session": "$new"}}  until an update holds this pattern; looks on from the last
    {"wait": {"request": METHOD, "as": "ask"}}      until the agent asks; `as` names the request
    {"answer": "ask", "result": … | "error": …}     answer it
    {"release": "go"}                               let the model go on after that hold
    {"eof": true} {"signal": "TERM"} {"kill": true} {"exit": 0} {"restart": true}
                                                    `exit` waits for the end and checks the code
    {"claim": "$new.sessionId"} {"yield": …}        hold a session's log as another process would; let it go

References, in any string (see `references`): `$NAME.path.to.value` is from the result of a request we sent,
or the params of one the agent sent; `$id.NAME` is our request's id; `$cwd` the session's directory.

When a step may act, so that the transcript's order never depends on luck
    1. Requests other than turns (`session/prompt`, `_agent_loop/steer`) are answered before the next step.
    2. Before anything is written, released, closed or killed, each unanswered turn must be *at rest* (see
       `rest`): its model call held or hung, the agent waiting for our answer, or a tool running whose
       `in_progress` the golden waited for; and no call of any session emits. The player waits, bounded.
    3. Then one round trip (`Editor.sync`), so that all the agent said up to here stands before the step.
    4. A turn that was answered without a `wait` for its response is an error: the golden's author must have
       thought it was still running. `together` is the way to write before the turn can begin.
After a cancel, a call that still unwinds is no resting place; it must end before the next step acts.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from pathlib import Path
from typing import Any

from tests.doubles.editor import Editor
from tests.doubles.transcript import Line, request_id_key
from tests.goldens.control import Control
from tests.goldens.golden import GoldenError, Json
from tests.goldens.references import References
from tests.goldens.rest import TURN_METHODS, Rest

__all__ = ["Player"]


class Player:
    """Plays one golden against one editor.

    Attributes:
        exited: True once the golden itself ended the process (until a restart).
        killed: True once any process was killed: nothing is promised of what it had not yet stored.
    """

    def __init__(self, editor: Editor, control: Control, cwd: Path, state: Path) -> None:
        self.editor, self.control = editor, control
        self.exited = self.killed = False
        self.rest = Rest(editor, control)
        self._state = state
        self._claims: dict[str, int] = {}
        self._names = References(str(cwd), self._result_of)

    def play(self, step: Json) -> None:
        """Do one step.

        Raises:
            GoldenError: The step makes no sense, or would be a race.
            EditorError: A wait ended without what it waited for.
        """
        match step:
            case {"wait": wait}:
                self._wait(wait)
            case {"together": steps}:
                self._say(list(steps))
            case {"send": _} | {"notify": _} | {"raw": _} | {"answer": _}:
                self._say([step])
            case {"bytes": text}:
                self.settle()
                self.editor.write_bytes(self._names.resolve(text).encode(), step.get("split"))
            case {"release": name}:
                self.editor.wait_until(
                    lambda: self.control.held(name), f"the model to be held under {name!r}"
                )
                self.settle()
                self.control.release(name)
            case {"claim": session}:
                self._claim(self._names.resolve(session))
            case {"yield": session}:
                os.close(self._claims.pop(self._names.resolve(session)))
            case {"exit": code}:
                self.exited = True
                found = self.editor.wait_exit()
                if found != code:
                    raise GoldenError(f"the server exited with {found}, not {code}")
            case {"restart": True}:
                self._restart()
            case {"eof": True} | {"signal": _} | {"kill": True}:
                self._end(step)
            case _:
                raise GoldenError(f"unknown step {step}")

    def settle(self) -> None:
        """Wait until acting is no race: rules 2 to 4 above."""
        deadline = time.monotonic() + self.editor.timeout_s
        what = "each running turn to be held, hung, in a tool whose in_progress was awaited, or asking us"
        while True:
            self.editor.wait_until(self.rest.reached, what)
            seen = self._news()
            self.editor.sync()
            if self.rest.reached() and seen == self._news():
                break
            if time.monotonic() > deadline:
                raise GoldenError("the connection never came to rest")
        self.rest.check_all_awaited()

    def _say(self, steps: list[Json]) -> None:
        self.settle()
        lines = [self._line(step) for step in steps]
        for line in lines:
            self.rest.wrote(line)
        self.editor.write_lines(lines)
        for line in lines:
            if line.is_request and line.method not in TURN_METHODS:
                self._await_answer(line)

    def _line(self, step: Json) -> Line:
        frame: Json = {"jsonrpc": "2.0"}
        match step:
            case {"raw": text}:
                text = self._names.resolve(text)
                return Line("editor", raw=text, frame=_request_in(text))
            case {"send": method}:
                number = self.editor.next_id()
                frame |= {
                    "id": number,
                    "method": method,
                    "params": self._names.resolve(step.get("params", {})),
                }
                self._names.requests[step.get("as", f"#{number}")] = number
            case {"notify": method}:
                frame |= {"method": method, "params": self._names.resolve(step.get("params", {}))}
            case {"answer": name}:
                if name not in self._names.asked:
                    raise GoldenError(f"no step waited for a request named {name!r}")
                key = "error" if "error" in step else "result"
                frame |= {"id": self._names.asked[name]["id"], key: self._names.resolve(step[key])}
            case _:
                raise GoldenError(f"{step} cannot be written")
        return Line("editor", frame=frame)

    def _await_answer(self, request: Line) -> None:
        answer = self.editor.wait_response(request.request_id)
        session = request.session if request.method in ("session/load", "session/resume") else None
        if request.method == "session/new":
            session = (answer.get("result") or {}).get("sessionId")
        if session is not None and "result" in answer:
            self.control.number(session)

    def _wait(self, wait: Json) -> None:
        match wait:
            case {"response": name}:
                request = self._names.request(name)
                self.editor.wait_response(request)
                self.rest.awaited(request)
            case {"update": pattern}:
                session = self._names.session(wait.get("session"))
                frame = self.editor.wait_update(self._names.resolve(pattern), session)
                self.rest.found(frame["params"]["sessionId"], frame["params"]["update"])
            case {"request": str(method)}:
                self._names.asked[wait.get("as", method)] = self.editor.wait_request(method)
            case _:
                raise GoldenError(f"cannot wait for {wait}")

    def _end(self, step: Json) -> None:
        self.settle()
        self.exited = True
        match step:
            case {"eof": True}:
                self.editor.eof()
            case {"signal": name}:
                self.editor.signal(name)
            case _:
                self.killed = True
                self.editor.signal("KILL")

    def _claim(self, session: str) -> None:
        (path,) = self._state.rglob(f"{session}.jsonl")
        self._claims[session] = fd = os.open(path, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _restart(self) -> None:
        if not self.exited:
            self._end({"eof": True})
        if not self.editor.has_exited:
            self.editor.wait_exit()
        self.rest.restarted()
        self.exited = False
        self.editor.start()

    def _news(self) -> tuple[int, int]:
        return len(self.editor.transcript), self.control.version

    def _result_of(self, request: object) -> Any:
        return self.editor.responses.get(request_id_key(request), {}).get("result")


def _request_in(text: str) -> Json | None:
    """The request a raw line spells, when it is one that will be answered under its own id."""
    try:
        frame = json.loads(text)
    except ValueError:
        return None

    is_request = isinstance(frame, dict) and isinstance(frame.get("method"), str)
    has_id = is_request and type(frame.get("id")) in (int, str)
    return frame if has_id and frame.get("jsonrpc") == "2.0" else None
