"""Names for what a trace numbers by chance: requests, sessions, the directory. Pure, stdlib only.

Owns the references a golden's steps use in their place (`$new1.sessionId`, `$id.prompt1`, `$cwd`), and how
one line of the editor is written as a step.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

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
# What a golden would take for a reference: a whole string like `$HOME`, or a name of ours anywhere.
_REFERENCE: Final = re.compile(rf"\$[A-Za-z]\w*(?:\.\w+)*\Z|\$(?:cwd|id|(?:{_OURS})\d+)\b")


class Names:
    """The names of one trace; requests get theirs as their steps are made."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._counts: Counter[str] = Counter()
        self._requests: dict[str, str] = {}
        self._asked: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        self._opened = dict(_opened(rows))
        self._cwd = _one_directory(self._opened.values())

    def session(self, session_id: str) -> str:
        """The reference to the request that made this session; the id itself when none did."""
        return self._sessions.get(session_id, session_id)

    def number(self, session_id: str, line: int) -> int:
        """Which session of the trace this is, counted from 1. Raises TraceError for one it never opened."""
        order = [opened for opened, _, _ in self._opened.values()]
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
            opened = self._opened.get(row.line)
            if opened is not None and method == "session/new":
                self._sessions[opened[0]] = f"${name}"
            return {"send": method, "params": params, "as": name}

        name = self._asked.pop(request_key(frame.get("id")), "")
        answer = {key: self._named(frame[key], row.line) for key in ("result", "error") if key in frame}
        if method is None and name and len(answer) == 1:
            return {"answer": name, **answer}
        return {"raw": json.dumps(self._named(frame, row.line))}

    def plain(self, value: Any) -> Any:
        """A value for the model's script, where only the directory has a name."""
        return _mapped(value, self._without_cwd)

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
            if (found := _REFERENCE.match(text) or _REFERENCE.search(text)) is not None and (
                found.start() == 0 or not found[0].endswith(text[found.start() :]) or _is_ours(found[0])
            ):
                raise TraceError(line, f"a golden would take {found[0]!r} in a text for a reference")
            for session_id, reference in self._sessions.items():
                text = text.replace(session_id, f"{reference}.sessionId")
            return self._without_cwd(text)

        return _mapped(value, name)

    def _without_cwd(self, text: str) -> str:
        return re.sub(rf"{re.escape(self._cwd)}(?!\w)", "$cwd", text) if self._cwd else text
