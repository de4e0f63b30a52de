"""What was said on one connection, in order: frames, raw lines, and events such as eof and exit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Frame", "Line", "is_update", "matches", "request_id_key", "show"]

Frame = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Line:
    """One transcript entry: a frame, a raw line, or an event. A raw line may carry the frame it spells."""

    sender: Literal["editor", "agent"]
    frame: Frame | None = None
    raw: str | None = None
    event: Frame | None = None

    def as_json(self) -> Frame:
        if self.raw is not None:
            return {"from": self.sender, "raw": self.raw}
        if self.frame is not None:
            return {"from": self.sender, "frame": self.frame}
        return {"from": self.sender, **(self.event or {})}

    @property
    def method(self) -> str | None:
        """The method of a request or notification; None for anything else."""
        method = (self.frame or {}).get("method")
        return method if isinstance(method, str) else None

    @property
    def session(self) -> str | None:
        """The session id in the frame's params, if there is one."""
        params = (self.frame or {}).get("params")
        session = params.get("sessionId") if isinstance(params, dict) else None
        return session if isinstance(session, str) else None

    @property
    def is_request(self) -> bool:
        return self.method is not None and "id" in (self.frame or {})

    @property
    def is_response(self) -> bool:
        return self.frame is not None and "method" not in self.frame

    @property
    def request_id(self) -> object:
        """The id of a request or response; None for anything else, and for an error that has none."""
        return (self.frame or {}).get("id")

    @property
    def update(self) -> Frame:
        """The `update` of a session/update; {} for anything else."""
        params = (self.frame or {}).get("params")
        update = (
            params.get("update") if isinstance(params, dict) and self.method == "session/update" else None
        )
        return update if isinstance(update, dict) else {}


def is_update(line: Line, session: str | None = None) -> bool:
    """True for an agent's session/update, of one session or of any."""
    return line.sender == "agent" and line.method == "session/update" and session in (None, line.session)


def show(lines: Sequence[Line], limit: int = 60) -> str:
    """The last lines, each cut to a readable length."""
    return "\n".join(json.dumps(line.as_json())[:600] for line in lines[-limit:])


def matches(pattern: Any, value: Any) -> bool:
    """True when `value` holds `pattern`: named keys of objects, whole lists, equal scalars of one type."""
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(
            k in value and matches(v, value[k]) for k, v in pattern.items()
        )
    if isinstance(pattern, list):
        return isinstance(value, list) and len(value) == len(pattern) and all(map(matches, pattern, value))
    return type(pattern) is type(value) and bool(pattern == value)


def request_id_key(number: object) -> str:
    """A request id as a dictionary key that keeps 1 and "1" apart."""
    return json.dumps(number)
