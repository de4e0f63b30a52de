"""Editor and agent rows of a trace to the steps of a golden's `when.jsonl`. Pure, stdlib only.

Rules.
1. The editor writes in the order of the trace. Before it does, it waits for what it had seen by then.
2. A golden may write only while each running turn rests: its model call is held or hung, the agent asks
   for permission, or a tool runs for good. So the model is held where it was when the line came; a line
   that came between two places of rest waits for the next one.
3. One session moves at a time: a held one is let go when the others have done what they did meanwhile.
4. Two things have no place of rest. A prompt stopped before its first model call is written together with
   what stopped it, and a trace that ends in the middle of a turn ends with the end of the input.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from acp_server.trace_model import Json, ModelCall, ModelCalls, Row
from acp_server.trace_names import Names, request_key

TURN_METHODS: Final = ("session/prompt", "_agent_loop/steer")
FINAL: Final = ("completed", "failed")
NEWS: Final = "session_info_update"
"""News of a session comes when its turn has unwound, which after a cancel is later than the answer."""

_Wait = tuple[int, Json]
"""Where in the trace something was seen, and the step that waits for it."""


@dataclass
class _Session:
    """What one session is doing at the row that is looked at.

    Attributes:
        turns: Turns that are written and not answered: request → the name of its step.
        asks: Permission requests without an answer.
        running: Calls announced and not ended, in order, each with whether its start was awaited.
        due: Answers and questions nobody waited for yet.
        seen: The last update, likewise.
        called: Whether the turn that runs has called the model.
        hold: The name its model is held under.
    """

    turns: dict[str, str] = field(default_factory=dict)
    asks: set[str] = field(default_factory=set)
    running: dict[str, bool] = field(default_factory=dict)
    due: list[_Wait] = field(default_factory=list)
    seen: _Wait | None = None
    call: ModelCall | None = None
    progress: int = 0
    called: bool = False
    hold: str = ""


class Steps:
    """Walks a trace once; `steps` is what came of it. Holds are put into `calls`."""

    def __init__(self, rows: Sequence[Row], calls: ModelCalls, names: Names) -> None:
        self.steps: list[Json] = []
        self._rows = rows
        self._calls = calls
        self._names = names
        self._sessions: dict[str, _Session] = {}
        self._turn_of: dict[str, str] = {}
        self._waiting: list[Row] = []
        self._at = 0
        self._holds = 0
        for self._at, row in enumerate(rows):
            if "event" in row.body:
                break  # the editor is gone: what follows is how the server leaves
            self._take(row)
            self._write()
        self._finish()

    def _take(self, row: Row) -> None:
        frame = row.body.get("frame")
        match row.sender:
            case "model":
                self._on_model()
            case "agent" if isinstance(frame, dict):
                self._on_agent(frame)
            case "editor":
                if isinstance(frame, dict) and frame.get("method") in TURN_METHODS and "id" in frame:
                    self._turn_of[request_key(frame["id"])] = _session_in(frame)
                self._waiting.append(row)

    def _on_model(self) -> None:
        at, calls = self._at, self._calls
        if at in calls.began:
            session = self._of(calls.began[at].session)
            session.call, session.progress, session.called = calls.began[at], 0, True
        elif at in calls.reached:
            call, progress = calls.reached[at]
            self._of(call.session).progress = progress
        else:
            self._of(calls.ended[at].session).call = None

    def _on_agent(self, frame: Json) -> None:
        key, session = request_key(frame.get("id")), self._of(_session_in(frame))
        if "method" not in frame:
            if key in self._turn_of:
                self._on_answer(key)
        elif "id" in frame:
            session.asks.add(key)
            wait = {"wait": {"request": frame["method"], "as": self._names.asked(frame)}}
            session.due.append((self._at, wait))
            session.seen = None
        elif isinstance(update := _params(frame).get("update"), dict):
            self._on_update(_session_in(frame), session, update)

    def _on_answer(self, key: str) -> None:
        session = self._of(self._turn_of.pop(key))
        name = session.turns.pop(key, "")
        if name:  # else it is not even written: it was answered before it found a place of rest
            session.due.append((self._at, {"wait": {"response": name}}))
        if not session.turns:
            session.seen, session.called = None, False
            session.asks.clear()

    def _on_update(self, session_id: str, session: _Session, update: Json) -> None:
        call_id = update.get("toolCallId")
        if update.get("status") in FINAL:
            session.running.pop(str(call_id), None)
        elif isinstance(call_id, str):
            session.running.setdefault(call_id, False)
        pattern = self._pattern(update)
        if pattern is not None and session.turns:
            session.seen = self._at, self._update_wait(session_id, pattern)
        elif update.get("sessionUpdate") == NEWS and not session.turns:
            session.due.append((self._at, self._update_wait(session_id, {"sessionUpdate": NEWS})))

    def _pattern(self, update: Json) -> Json | None:
        """What to look for when this update is waited for; None for one that may differ the next time."""
        match update:
            case {"sessionUpdate": kind, "content": {"type": "text", "text": str(text)}}:
                told = {"content": {"type": "text", "text": text}} if self._names.is_plain(text) else {}
                return {"sessionUpdate": kind, **told}
            case {"sessionUpdate": kind, "toolCallId": call_id, "status": status}:
                return {"sessionUpdate": kind, "toolCallId": call_id, "status": status}
            case {"sessionUpdate": kind, "toolCallId": call_id, "content": [*content]}:
                output = {"sessionUpdate": kind, "toolCallId": call_id, "content": content}
                return output if self._names.is_plain(str(content)) else None
            case _:
                return None

    def _write(self) -> None:
        """Write every waiting line that may be written now."""
        while self._waiting and all(self._rests(session) for session in self._busy()):
            self._arrive()
            self.steps.append(self._step(self._waiting.pop(0)))
        if self._waiting and self._stops_unbegun(self._waiting[0].body.get("frame")):
            last = self.steps.pop()
            step = self._step(self._waiting.pop(0))
            self.steps.append({"together": [*last.get("together", [last]), step]})

    def _rests(self, session: _Session) -> bool:
        if session.call is not None or session.asks:
            return True
        return bool(session.running) and not self._calls_again(session)

    def _calls_again(self, session: _Session) -> bool:
        """Whether the turn that runs calls the model once more."""
        running = next(iter(session.turns))
        for at in range(self._at + 1, len(self._rows)):
            call = self._calls.began.get(at)
            if call is not None and self._of(call.session) is session:
                return True
            match self._rows[at]:
                case Row(sender="agent", body={"frame": {"id": number, **rest}}) if "method" not in rest:
                    if request_key(number) == running:
                        return False
        return False

    def _stops_unbegun(self, frame: Any) -> bool:
        """Whether this line stops a prompt that was just written, before it called the model."""
        last = self.steps[-1] if self.steps else {}
        just_sent = [step.get("send") for step in last.get("together", [last])]
        match frame:
            case {"method": "session/cancel", "params": {"sessionId": str(session_id)}}:
                session = self._of(session_id)
            case {"method": "$/cancel_request", "params": {"requestId": request}}:
                session = self._of(self._turn_of.get(request_key(request), ""))
            case _:
                return False
        begun = session.called or not session.turns or self._calls_again(session)
        return not begun and "session/prompt" in just_sent

    def _arrive(self) -> None:
        """Wait for what was seen up to here, and hold every model where it is."""
        free = [session for session in self._sessions.values() if not session.hold]
        self._await(*free)
        for session in [session for session in self._sessions.values() if session.hold]:
            self.steps.append({"release": session.hold})
            session.hold = ""
            self._await(session)
        for session in self._busy():
            call = session.call
            if call is not None and not (call.stopped and session.progress == len(call.items)):
                self._holds += 1
                session.hold = f"hold{self._holds}"
                call.hold(session.progress, session.hold)

    def _await(self, *sessions: _Session) -> None:
        waits: list[_Wait] = []
        for session in sessions:
            waits += session.due
            if session.turns and session.call is None and not session.asks:
                waits += self._start(session)
            if session.turns and session.seen is not None and session.seen not in waits:
                waits.append(session.seen)
            session.due, session.seen = [], None
        waits.sort(key=lambda wait: wait[0])
        self.steps += [step for _, step in waits]

    def _start(self, session: _Session) -> list[_Wait]:
        """A tool is only known to run once its start was seen, which may be after the line came."""
        call_id = next(iter(session.running), None)
        if call_id is None or session.running[call_id]:
            return []
        session.running[call_id] = True
        started = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "in_progress"}
        session_id = next(key for key, other in self._sessions.items() if other is session)
        at = session.seen[0] if session.seen is not None else self._at
        return [(at, self._update_wait(session_id, started))]

    def _update_wait(self, session_id: str, update: Json) -> Json:
        return {"wait": {"update": update, "session": self._names.session(session_id)}}

    def _step(self, row: Row) -> Json:
        """The step that writes this line; notes what it begins or ends."""
        step, frame = self._names.step(row), row.body.get("frame")
        if "answer" in step:
            for session in self._sessions.values():
                session.asks.discard(request_key(row.body["frame"]["id"]))
        if step.get("send") in TURN_METHODS and isinstance(frame, dict):
            key = request_key(frame["id"])
            if key in self._turn_of:
                self._of(self._turn_of[key]).turns[key] = step["as"]
            else:
                self._of(_session_in(frame)).due.append((self._at, {"wait": {"response": step["as"]}}))
        return step

    def _finish(self) -> None:
        for row in self._waiting:
            self._arrive()
            self.steps.append(self._step(row))
        self._arrive()
        if self._busy():
            self.steps += [{"eof": True}, {"exit": 0}]

    def _busy(self) -> list[_Session]:
        return [session for session in self._sessions.values() if session.turns]

    def _of(self, session_id: str) -> _Session:
        return self._sessions.setdefault(session_id, _Session())


def _params(frame: Json) -> Json:
    params = frame.get("params")
    return params if isinstance(params, dict) else {}


def _session_in(frame: Json) -> str:
    """The session a frame names; empty when it names none."""
    return str(_params(frame).get("sessionId", ""))
