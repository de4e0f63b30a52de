"""Names for what a trace numbers by chance: requests, sessions, the directory. Pure, stdlib only.

Owns the references a golden's steps use in their place (`$new1.sessionId`, `$id.prompt1`, `$cwd`), and how
one line of the editor is written as a step.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from acp_server.trace_model import Json, Row, TraceError

_WORDS: Final = {
    "initialize": "hello",
    "session/new": "new",
    "session/load": "load",
    "session/prompt": "prompt",
    "_agent_loop/steer": "steer",
}
_REQUEST, _ASK = "request", "ask"
_OURS: Final = "|".join((*_WORDS.values(), _REQUEST, _ASK))
# A golden takes a whole string like `$HOME` for a reference, and a name it knows anywhere in one.
_WHOLE: Final = re.compile(r"\$[A-Za-z]\w*(?:\.\w+)*")
_WITHIN: Final = re.compile(rf"\$(?:cwd|id|(?:{_OURS})\d+)\b")


class Names:
    """The names of one trace; requests get theirs as their steps are made."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._counts: Counter[str] = Counter()
        self._requests: dict[str, str] = {}
        self._asked: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        self._opened = list(_opened(rows))
        self._cwd = _one_directory(self._opened) or _asked_directory(rows)

    def session(self, session_id: str) -> str:
        """The reference to the request that made this session; the id itself when none did."""
        return self._sessions.get(session_id, session_id)

    def number(self, session_id: str, line: int) -> int:
        """Which session of the trace this is, counted from 1. Raises TraceError for one it never opened."""
        order = [opened.session_id for opened in self._opened]
        if session_id not in order:
            raise TraceError(line, f"the model works for a session that was never opened: {session_id}")
        return order.index(session_id) + 1

    def asked(self, frame: Json) -> str:
        """A name for a request of the agent."""
        name = self._next(_ASK)
        self._asked[request_key(frame["id"])] = name
        return name

    def step(self, row: Row) -> Json:
        """The step that writes a line of the editor.

        Raises:
            TraceError: Its text would be read as a reference.
        """
        frame = row.body.get("frame")
        if "raw" in row.body:
            return {"raw": self._named(row.body["raw"], row.line)}
        if not isinstance(frame, dict):
            return {"raw": json.dumps(frame)}

        method, params = frame.get("method"), frame.get("params", {})
        if isinstance(method, str) and isinstance(params, dict) and _is_id(frame.get("id", 0)):
            params = self._named(params, row.line)
            if "id" not in frame:
                return {"notify": method, "params": self._with_request(method, params)}
            name = self._next(_WORDS.get(method, _REQUEST))
            self._requests[request_key(frame["id"])] = name
            self._sessions |= {at.session_id: f"${name}" for at in self._opened if at.line == row.line}
            return {"send": method, "params": params, "as": name}

        name = self._asked.pop(request_key(frame.get("id")), "")
        answer = {key: self._named(frame[key], row.line) for key in ("result", "error") if key in frame}
        if method is None and name and len(answer) == 1:
            return {"answer": name, **answer}
        if _is_id(frame.get("id")):
            frame = {**frame, "id": self._next("raw")}  # its own might be one of the golden's requests
        return {"raw": json.dumps(self._named(frame, row.line))}

    def plain(self, value: Any) -> Any:
        """A value for the model's script, where only the directory has a name."""
        return _mapped(value, self._without_cwd)

    def is_plain(self, text: str) -> bool:
        """Whether a text can stand in a step as it is."""
        return "$" not in text and self._without_cwd(text) == text

    def _next(self, word: str) -> str:
        self._counts[word] += 1
        return f"{word}{self._counts[word]}"

    def _with_request(self, method: str, params: Json) -> Json:
        name = (
            self._requests.get(request_key(params.get("requestId"))) if method == "$/cancel_request" else None
        )
        return params if name is None else {**params, "requestId": f"$id.{name}"}

    def _named(self, value: Any, line: int) -> Any:
        def name(text: str) -> str:
            found = _WHOLE.fullmatch(text) or _WITHIN.search(text)
            if found is not None:
                raise TraceError(line, f"a golden would take the text {found[0]!r} for a reference")
            for session_id, reference in self._sessions.items():
                text = text.replace(session_id, f"{reference}.sessionId")
            return self._without_cwd(text)

        return _mapped(value, name)

    def _without_cwd(self, text: str) -> str:
        return re.sub(rf"{re.escape(self._cwd)}(?!\w)", "$cwd", text) if self._cwd else text


def request_key(number: object) -> str:
    """A request id as a dictionary key that keeps 1 and "1" apart."""
    return json.dumps(number)


class _Opened(NamedTuple):
    """A session, where it works, and the line that asked for it."""

    session_id: str
    cwd: str
    line: int


def _opened(rows: Sequence[Row]) -> Iterator[_Opened]:
    """The sessions a trace makes, in the order they were asked for.

    Raises:
        TraceError: It loads a session it did not make: a golden begins with an empty store.
    """
    asked: dict[str, tuple[Row, Json]] = {}
    found: list[_Opened] = []
    for row in rows:
        frame = row.body.get("frame")
        if not isinstance(frame, dict):
            continue
        key = request_key(frame.get("id"))
        if row.sender == "editor" and frame.get("method") in ("session/new", "session/load"):
            asked[key] = row, frame
        elif row.sender == "agent" and "result" in frame and key in asked:
            request, question = asked.pop(key)
            if question["method"] == "session/new":
                found.append(_Opened(frame["result"]["sessionId"], question["params"]["cwd"], request.line))
            elif question["params"]["sessionId"] not in [opened.session_id for opened in found]:
                raise TraceError(request.line, "it loads a session that was made before the trace began")
    return iter(sorted(found, key=lambda opened: opened.line))


def _one_directory(opened: Sequence[_Opened]) -> str:
    """The directory all sessions work in or below; empty without a session. Raises TraceError for two."""
    if not opened:
        return ""
    cwd = min((session.cwd.rstrip("/") for session in opened), key=len)
    for session in opened:
        if session.cwd.rstrip("/") != cwd and not session.cwd.startswith(f"{cwd}/"):
            raise TraceError(session.line, f"a golden has one directory, and {session.cwd} is not in {cwd}")
    return cwd


def _asked_directory(rows: Sequence[Row]) -> str:
    """The first directory an editor named, though no session was made in it."""
    for row in rows:
        match row.body:
            case {"from": "editor", "frame": {"params": {"cwd": str(cwd)}}} if cwd.startswith("/"):
                return cwd.rstrip("/")
    return ""


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """A copy of a JSON value with every text changed."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    return value


def _is_id(value: object) -> bool:
    return type(value) in (int, str)
