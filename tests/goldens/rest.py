"""Knows when nothing the agent does by itself can come between two lines of the transcript.

Owns the notion of *rest* that `player` waits for before it acts: each unanswered turn's model call is held or
hung, or the agent waits for our answer, or the golden waited for a tool's `in_progress`; and no call emits.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.doubles.editor import Editor
from tests.doubles.transcript import Line, is_update, request_id_key
from tests.goldens.control import Control
from tests.goldens.golden import GoldenError, Json

__all__ = ["TURN_METHODS", "Rest"]

TURN_METHODS = frozenset({"session/prompt", "_agent_loop/steer"})
_STOPPING = frozenset({"session/cancel", "session/close", "session/delete"})


@dataclass(slots=True)
class _Turn:
    """A prompt or steer we sent; `awaited` once a step waited for its response."""

    request: object
    name: str
    session: str | None
    awaited: bool = False


class Rest:
    """What each session of one process is doing, as far as the editor and the model's control can see."""

    def __init__(self, editor: Editor, control: Control) -> None:
        self._editor, self._control = editor, control
        self._turns: list[_Turn] = []
        self._closed: set[str] = set()  # the agent's requests we answered, or whose turn we cancelled
        self._in_tool: dict[str, str] = {}  # session → call whose in_progress the golden waited for
        self._since = 0  # where the current process begins in the transcript

    def restarted(self) -> None:
        """A new process begins: nothing of the old one is open any more."""
        self._turns.clear()
        self._closed.clear()
        self._in_tool.clear()
        self._since = len(self._editor.transcript)

    def wrote(self, line: Line) -> None:
        """Note an editor's line."""
        if line.is_request and line.method in TURN_METHODS:
            self._turns.append(_Turn(line.request_id, f"{line.method} {line.request_id}", line.session))
        if line.is_response:
            self._closed.add(request_id_key(line.request_id))
        if line.method in _STOPPING and line.session is not None:
            self._control.doom(line.session)
            self._in_tool.pop(line.session, None)
            self._closed |= self._open_requests(line.session)

    def awaited(self, request: object) -> None:
        """A step waited for this request's response."""
        for turn in self._turns:
            turn.awaited |= turn.request == request

    def found(self, session: str, update: Json) -> None:
        """A step waited for this update: when a tool starts, the golden knows that it runs."""
        if update.get("status") == "in_progress":
            self._in_tool[session] = update["toolCallId"]

    def reached(self) -> bool:
        """True when the agent can do nothing before we do something."""
        running = {turn.session for turn in self._turns if not self._is_answered(turn)}
        for call in self._control.calls():
            if call.state == "emitting" or call.doomed or call.session not in running:
                return False
        return all(self._rests(session) for session in running)

    def check_all_awaited(self) -> None:
        """Refuse to go on when a turn ended that the golden may believe to be running."""
        for turn in self._turns:
            if self._is_answered(turn) and not turn.awaited:
                raise GoldenError(
                    f"{turn.name} was answered, yet no step waits for its response: to write while it runs, "
                    "give the model a hold or a hang; to write before it begins, use together; else wait for "
                    "the response"
                )

    def check_all_answered(self) -> None:
        """At the end of a golden whose process lives on, nothing may be unanswered."""
        for turn in self._turns:
            if not self._is_answered(turn):
                raise GoldenError(f"the golden ends while {turn.name} is not answered")

    def _rests(self, session: str | None) -> bool:
        if session is None:
            return False  # a turn without a session is refused: its answer is on the way
        if self._control.calls(session) or self._open_requests(session):
            return True  # the calls are held or hung: `reached` looked

        call_id = self._in_tool.get(session)
        updates = [line.update for line in self._editor.transcript if is_update(line, session)]
        ended = any(
            u.get("toolCallId") == call_id and u.get("status") in ("completed", "failed") for u in updates
        )
        return call_id is not None and not ended

    def _open_requests(self, session: str) -> set[str]:
        lines = [line for line in self._editor.transcript[self._since :] if line.sender == "agent"]
        asked = {
            request_id_key(line.request_id) for line in lines if line.is_request and line.session == session
        }
        return asked - self._closed

    def _is_answered(self, turn: _Turn) -> bool:
        return request_id_key(turn.request) in self._editor.responses
