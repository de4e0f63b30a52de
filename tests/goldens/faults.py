"""The standing checks: what must hold in every transcript, whatever the golden is about.

Owns the rules below as one pass over the lines. They are kinds of fault from public bug reports:
1. no session/update for a session outside its prompts, except title, commands, mode, option and notice
   news, and the replay between a load and its answer; once a turn is answered, nothing of it follows;
2. each tool call reaches completed or failed before its turn is answered;
3. each tool_call_update, and each permission asked, names a call announced before, announced once;
4. nothing names a session before the answer of its session/new; each request is answered once.
The fourth check of the list, a server that answers a further prompt, is `runner`'s: it needs a live process.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.doubles.transcript import Line, request_id_key
from tests.goldens.golden import Json

__all__ = ["fact_faults", "transcript_faults"]

_ANY_TIME = frozenset(
    {
        "session_info_update",
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
        "notice",
    }
)
_ENDED = ("completed", "failed")
_TURN_OF = re.compile(r"t(\d+)\.s\d+\.a\d+\.\w+")


@dataclass
class _Session:
    prompts: list[str] = field(default_factory=list)  # unanswered, in order: the first one runs
    loading: set[str] = field(default_factory=set)
    steering: set[str] = field(default_factory=set)
    cards: dict[str, str] = field(default_factory=dict)
    answered_cards: set[str] = field(default_factory=set)
    turn: int = 0
    answered_turn: int = 0


class _Watch:
    def __init__(self) -> None:
        self.faults: list[str] = []
        self._sessions: dict[str, _Session] = {}
        self._asked: dict[str, tuple[str, str | None]] = {}  # request → method, session
        self._answered: set[str] = set()

    def see(self, number: int, line: Line) -> None:
        before = len(self.faults)
        if (line.event or {}).get("event") == "exit":
            self._sessions.clear()
            self._asked.clear()
        elif line.sender == "editor" and line.is_request:
            self._see_request(line)
        elif line.sender == "agent" and line.is_response:
            self._see_answer(line)
        elif line.sender == "agent" and line.session is not None:
            self._see_agent(line, line.session)
        self.faults[before:] = [f"line {number}: {fault}" for fault in self.faults[before:]]

    def _see_request(self, line: Line) -> None:
        key = request_id_key(line.request_id)
        self._asked[key] = (line.method or "", line.session)
        self._answered.discard(key)
        if line.session is None:
            return

        match line.method:
            case "session/prompt":
                self._of(line.session).prompts.append(key)
            case "_agent_loop/steer":
                self._of(line.session).steering.add(key)
            case "session/load":
                self._of(line.session).loading.add(key)
                self._of(line.session).cards.clear()
                self._of(line.session).answered_cards.clear()

    def _see_answer(self, line: Line) -> None:
        key = request_id_key(line.request_id)
        if line.request_id is None:
            return
        if key in self._answered:
            self.faults.append(f"request {key} is answered twice")
        self._answered.add(key)
        method, name = self._asked.get(key, ("", None))
        if method == "session/new" and isinstance((line.frame or {}).get("result"), dict):
            self._of((line.frame or {})["result"]["sessionId"])
        if name is None:
            return

        session = self._of(name)
        session.steering.discard(key)
        if ((line.frame or {}).get("result") or {}).get("outcome") == "prompted":
            self._close_turn(session)
        if key in session.loading:
            session.loading.discard(key)
            session.answered_cards |= set(session.cards)
        if key in session.prompts:
            # While a steer is open, the turn may be its own, and the prompts only wait.
            runs = session.prompts[0] == key and not session.steering
            session.prompts.remove(key)
            if runs:
                self._close_turn(session)

    def _close_turn(self, session: _Session) -> None:
        for call_id, status in session.cards.items():
            if status not in _ENDED and call_id not in session.answered_cards:
                self.faults.append(f"the turn is answered while tool call {call_id} is {status} (check 2)")
        session.answered_cards |= set(session.cards)
        session.answered_turn = session.turn

    def _see_agent(self, line: Line, name: str) -> None:
        if name not in self._sessions:
            self.faults.append(f"{line.method} names session {name} before the editor knows it (check 4)")
        session = self._of(name)
        if line.method == "session/request_permission":
            call_id = (line.frame or {})["params"]["toolCall"]["toolCallId"]
            if call_id not in session.cards:
                self.faults.append(
                    f"permission is asked for call {call_id}, which was never announced (check 3)"
                )
        if line.method == "session/update":
            self._see_update(line.update, session)

    def _see_update(self, update: Json, session: _Session) -> None:
        kind = update.get("sessionUpdate")
        if kind in _ANY_TIME or session.loading:
            if kind in ("tool_call", "tool_call_update"):
                session.cards[update["toolCallId"]] = update.get("status") or "pending"
            return

        if not session.prompts and not session.steering:
            self.faults.append(f"{kind} comes outside any prompt (check 1)")
        turn = _TURN_OF.fullmatch(str(update.get("messageId")))
        if turn is not None:
            session.turn = max(session.turn, int(turn[1]))
            if int(turn[1]) <= session.answered_turn:
                self.faults.append(f"{kind} of turn {turn[1]} comes after that turn was answered (check 1)")
        if kind in ("tool_call", "tool_call_update"):
            self._see_card(kind, update, session)

    def _see_card(self, kind: str, update: Json, session: _Session) -> None:
        call_id = update["toolCallId"]
        if kind == "tool_call" and call_id in session.cards:
            self.faults.append(f"tool call {call_id} is announced twice (check 3)")
        if kind == "tool_call_update" and call_id not in session.cards:
            self.faults.append(f"tool_call_update for call {call_id}, which was never announced (check 3)")
        if call_id in session.answered_cards:
            self.faults.append(f"{kind} for call {call_id} comes after its turn was answered (check 1)")
        session.cards[call_id] = update.get("status") or session.cards.get(call_id, "pending")

    def _of(self, name: str) -> _Session:
        return self._sessions.setdefault(name, _Session())


def transcript_faults(lines: Sequence[Line]) -> list[str]:
    """What is wrong with a transcript, line by line; empty when nothing is."""
    watch = _Watch()
    for number, line in enumerate(lines, 1):
        watch.see(number, line)
    return watch.faults


def fact_faults(facts: Sequence[Json], allows: frozenset[str]) -> list[str]:
    """Tool results that carry an error code nobody asked for."""
    faults = []
    for fact in facts:
        code = str(fact["data"].get("errorCode") or "").upper() if fact["type"] == "tool/result" else ""
        if code == "UNKNOWN_TOOL" and "unknown-tool" not in allows:
            faults.append(
                f"fact {fact['seq']}: the model called a tool that does not exist; is the script right?"
            )
        if code.startswith("INTERNAL") and "internal-error" not in allows:
            faults.append(f"fact {fact['seq']}: a tool failed from inside: {fact['data'].get('content')}")
    return faults
