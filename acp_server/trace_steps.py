"""Editor and agent rows of a trace to the steps of a golden's `when.jsonl`. Pure, stdlib only.

Rules.
1. The editor writes in the order of the trace. Before it does, it waits for what it had seen by then.
2. A golden may write only while each running turn rests: its model call is held or hung, the agent asks
   for permission, or a tool runs for good. So the model is held where it was when the line came; a line
   that came between two places of rest waits for the next one.
3. Two exceptions have no place of rest. A prompt stopped before its first model call is written together
   with what stopped it, and a trace that ends in the middle of a turn ends with the end of the input.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from acp_server.trace_model import Json, ModelCall, ModelCalls, Row
from acp_server.trace_names import Names, request_key

TURN_METHODS: Final = ("session/prompt", "_agent_loop/steer")
FINAL: Final = ("completed", "failed")


@dataclass
class _Session:
    """What one session is doing at the row that is looked at.

    Attributes:
        turns: Unanswered turns: request → the name of its step, "" while it waits to be written.
        asks: Permission requests without an answer.
        running: Calls announced and not ended, in order, each with whether its start was awaited.
        seen: The last update nobody waited for.
        called: Whether the turn that runs has called the model.
    """

    turns: dict[str, str] = field(default_factory=dict)
    asks: set[str] = field(default_factory=set)
    running: dict[str, bool] = field(default_factory=dict)
    call: ModelCall | None = None
    at: int = 0
    seen: Json | None = None
    called: bool = False


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
        self._due: list[Json] = []
        self._holds = 0
        for at, row in enumerate(rows):
            self._take(at, row)
            self._write(at)
        self._finish()

    def _take(self, at: int, row: Row) -> None:
        match row.sender:
            case "model":
                self._on_model(at)
            case "agent":
                self._on_agent(row.body.get("frame"))
            case "editor":
                self._on_editor(row)

    def _on_model(self, at: int) -> None:
        if at in self._calls.began:
            call = self._calls.began[at]
            session = self._of(call.session)
            session.call, session.at, session.called = call, 0, True
        elif at in self._calls.reached:
            call, progress = self._calls.reached[at]
            self._of(call.session).at = progress
        else:
            self._of(self._calls.ended[at].session).call = None

    def _on_editor(self, row: Row) -> None:
        frame = row.body.get("frame")
        if isinstance(frame, dict) and frame.get("method") in TURN_METHODS and "id" in frame:
            self._turn_of[request_key(frame["id"])] = _session_in(frame)
        self._waiting.append(row)

    def _on_agent(self, frame: Any) -> None:
        if not isinstance(frame, dict):
            return
        key = request_key(frame.get("id"))
        if "method" not in frame:
            if key in self._turn_of:
                self._on_answer(key)
        elif "id" in frame:
            session = self._of(_session_in(frame))
            session.asks.add(key)
            session.seen = None
            self._due.append({"wait": {"request": frame["method"], "as": self._names.asked(frame)}})
        elif frame["method"] == "session/update":
            self._on_update(self._of(_session_in(frame)), frame["params"].get("update", {}))

    def _on_answer(self, key: str) -> None:
        session = self._of(self._turn_of.pop(key))
        name = session.turns.pop(key, "")
        if name:  # else it is not even written yet: it was answered before it found a place of rest
            self._due.append({"wait": {"response": name}})
        if not session.turns:
            session.seen, session.called = None, False
            session.asks.clear()

    def _on_update(self, session: _Session, update: Json) -> None:
        call_id, status = update.get("toolCallId"), update.get("status")
        if isinstance(call_id, str):
            if status in FINAL:
                session.running.pop(call_id, None)
            elif call_id not in session.running:
                session.running[call_id] = False
        pattern = self._pattern(update)
        if pattern is not None and session.turns:
            session.seen = pattern

    def _write(self, at: int) -> None:
        """Write every waiting line that may be written now."""
        while self._waiting and all(self._rests(at, session) for session in self._busy()):
            self._say(self._waiting.pop(0))
        if self._waiting and (session := self._stopped_unbegun(at)) is not None:
            step = self._step(self._waiting.pop(0))
            self.steps[-1] = {"together": [*self.steps[-1].get("together", [self.steps[-1]]), step]}
            session.seen = None

    def _rests(self, at: int, session: _Session) -> bool:
        if session.call is not None or session.asks:
            return True
        return bool(session.running) and not self._calls_again(at, session)

    def _stopped_unbegun(self, at: int) -> _Session | None:
        """The session whose prompt the next line stops before it called the model, if there is one."""
        frame = self._waiting[0].body.get("frame")
        last = self.steps[-1] if self.steps else {}
        just_sent = [step.get("send") for step in last.get("together", [last])]
        if not isinstance(frame, dict) or "session/prompt" not in just_sent:
            return None

        match frame:
            case {"method": "session/cancel", "params": {"sessionId": str(session_id)}}:
                session = self._of(session_id)
            case {"method": "$/cancel_request", "params": {"requestId": request}}:
                session = self._of(self._turn_of.get(request_key(request), ""))
            case _:
                return None
        return (
            session if session.turns and not session.called and not self._calls_again(at, session) else None
        )

    def _calls_again(self, at: int, session: _Session) -> bool:
        """Whether the turn that runs calls the model once more."""
        running = next(iter(session.turns))
        for later in range(at + 1, len(self._rows)):
            call = self._calls.began.get(later)
            if call is not None and self._of(call.session) is session:
                return True
            row = self._rows[later]
            match row.body.get("frame"):
                case {"id": number, **rest} if row.sender == "agent" and "method" not in rest:
                    if request_key(number) == running:
                        return False
        return False

    def _say(self, row: Row) -> None:
        releases = list(self._arrive())
        self.steps.append(self._step(row))
        self.steps += releases

    def _arrive(self) -> Iterator[Json]:
        """Add the waits up to here and hold the models; yields the releases that must follow."""
        self.steps += self._due
        self._due.clear()
        for session_id, session in self._sessions.items():
            if not session.turns:
                continue
            call = session.call
            if call is not None and not (call.stopped and session.at == len(call.items)):
                self._holds += 1
                call.hold(session.at, f"hold{self._holds}")
                yield {"release": f"hold{self._holds}"}
            if call is None and not session.asks:
                self._await_start(session_id, session)
            elif session.seen is not None:
                self._await(session_id, session.seen)
            session.seen = None

    def _await_start(self, session_id: str, session: _Session) -> None:
        """The tool that runs is only known to run once its start was seen."""
        call_id = next(iter(session.running), None)
        if call_id is not None and not session.running[call_id]:
            session.running[call_id] = True
            started = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "in_progress"}
            self._await(session_id, started)

    def _await(self, session_id: str, update: Json) -> None:
        self.steps.append({"wait": {"update": update, "session": self._names.session(session_id)}})

    def _step(self, row: Row) -> Json:
        """The step that writes this line; notes what it begins or ends."""
        frame = row.body.get("frame")
        if isinstance(frame, dict) and "method" not in frame:
            self._answered(frame)
        step = self._names.step(row)
        if isinstance(frame, dict) and step.get("send") in TURN_METHODS:
            key = request_key(frame["id"])
            if key in self._turn_of:
                self._of(self._turn_of[key]).turns[key] = step["as"]
            else:
                self._due.append({"wait": {"response": step["as"]}})
        return step

    def _answered(self, frame: Json) -> None:
        for session in self._sessions.values():
            session.asks.discard(request_key(frame.get("id")))

    def _finish(self) -> None:
        while self._waiting:
            self._say(self._waiting.pop(0))
        releases = list(self._arrive())
        if any(session.turns for session in self._sessions.values()):
            self.steps += [{"eof": True}, {"exit": 0}]
        else:
            self.steps += releases

    def _pattern(self, update: Json) -> Json | None:
        """What to look for when this update is waited for; None for one that may differ the next time."""
        match update:
            case {"sessionUpdate": kind, "content": {"type": "text", "text": str(text)}}:
                told = {"content": {"type": "text", "text": text}} if self._names.is_plain(text) else {}
                return {"sessionUpdate": kind, **told}
            case {"sessionUpdate": kind, "toolCallId": call_id, "status": status}:
                return {"sessionUpdate": kind, "toolCallId": call_id, "status": status}
            case _:
                return None

    def _busy(self) -> list[_Session]:
        return [session for session in self._sessions.values() if session.turns]

    def _of(self, session_id: str) -> _Session:
        return self._sessions.setdefault(session_id, _Session())


def _session_in(frame: Json) -> str:
    """The session a frame names; empty when it names none."""
    params = frame.get("params")
    return str(params.get("sessionId", "")) if isinstance(params, dict) else ""
