"""Replaces what may differ between two runs of one golden, and nothing else.

Owns the list: session ids `<s1>`, minted message ids `<m1>`, ids of the agent's requests (1, 2, … as first
seen), the session's directory `<cwd>`, the state directory `<state>`, times and durations 0, pids 0, our
version `<version>`. The editor's own request ids are ours already, and kept as written: an agent that turns
"7" into 7 must show. Anything else that varies is a bug of the server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.doubles.transcript import Line, request_id_key
from tests.goldens.golden import Json

__all__ = ["Normaliser", "as_rows"]

_ZEROED = frozenset(
    {"time", "dt_ms", "createdAt", "updatedAt", "durationMs", "duration_ms", "delayMs", "pid"}
)
_MINTED = frozenset({"messageId", "messageIds", "id"})
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Normaliser:
    """The names given in one golden; the same value gets the same name in transcript and facts.

    Args:
        sessions: Session ids in order of first appearance.
    """

    def __init__(self, sessions: Sequence[str], cwd: Path, state: Path) -> None:
        self._names: dict[str, str] = {}
        self._sessions = list(sessions)
        self._messages = 0
        self._agent_ids: dict[str, int] = {}
        for place, name in ((cwd, "<cwd>"), (state, "<state>")):
            for spelling in {str(place), str(place.resolve())}:
                self._names[spelling] = name
        for number, session in enumerate(sessions, 1):
            self._names[session] = f"<s{number}>"

    def transcript(self, lines: Iterable[Line]) -> list[Json]:
        """The transcript's rows."""
        rows = []
        for line in lines:
            row = line.as_json()
            if line.raw is None and line.frame is not None:
                row["frame"] = self._with_agent_id(line)
            rows.append(self._clean(row))
        return rows

    def facts(self, rows: Iterable[Json]) -> list[Json]:
        """One session's facts."""
        return [self._clean(row) for row in rows]

    def text(self, text: str) -> str:
        """Running text, such as a workspace file."""
        for value in sorted(self._names, key=len, reverse=True):
            text = text.replace(value, self._names[value])
        return text

    def _with_agent_id(self, line: Line) -> Json:
        frame = dict(line.frame or {})
        asked_by_agent = line.is_request == (line.sender == "agent")
        if "id" in frame and asked_by_agent and (line.is_request or line.is_response):
            key = request_id_key(frame["id"])
            frame["id"] = self._agent_ids.setdefault(key, len(self._agent_ids) + 1)
        info = frame["result"].get("agentInfo") if isinstance(frame.get("result"), dict) else None
        if isinstance(info, dict) and isinstance(info.get("version"), str):
            frame["result"] = {**frame["result"], "agentInfo": {**info, "version": "<version>"}}
        return frame

    def _clean(self, row: Json) -> Json:
        self._learn(row)
        cleaned: Json = self._replace(row)
        return cleaned

    def _learn(self, value: Any, key: str = "") -> None:
        if isinstance(value, dict):
            for name, item in value.items():
                self._learn(item, name)
        elif isinstance(value, list):
            for item in value:
                self._learn(item, key)
        elif (
            isinstance(value, str) and key in _MINTED and _UUID.fullmatch(value) and value not in self._names
        ):
            self._messages += 1
            self._names[value] = f"<m{self._messages}>"

    def _replace(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: self._replace(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [self._replace(item, key) for item in value]
        if key in _ZEROED and isinstance(value, int | float | str) and not isinstance(value, bool):
            return 0
        return self.text(value) if isinstance(value, str) else value


def as_rows(rows: Iterable[Json]) -> str:
    """Rows as text: one a line, keys sorted."""
    return "".join(json.dumps(row, sort_keys=True, ensure_ascii=False) + "\n" for row in rows)
