"""References in steps: `$new.sessionId`, `$ask.options.0.optionId`, `$id.p1`, `$cwd`.

Owns names and what they stand for. A string that is only a reference becomes the value itself; inside a
longer string it becomes text, and a dollar sign that names nothing is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.goldens.golden import GoldenError, Json

__all__ = ["References"]

_REFERENCE = re.compile(r"\$([A-Za-z]\w*)((?:\.\w+)*)")


class References:
    """The names one golden has given so far.

    Attributes:
        requests: Name of a request we sent → its id.
        asked: Name of a request the agent sent → its frame.
    """

    def __init__(self, cwd: str, result_of: Callable[[object], Any]) -> None:
        self.requests: dict[str, object] = {}
        self.asked: dict[str, Json] = {}
        self._cwd = cwd
        self._result_of = result_of

    def resolve(self, value: Any) -> Any:
        """`value` with every reference in it replaced.

        Raises:
            GoldenError: A string that is only a reference names nothing, or its path leads nowhere.
        """
        if isinstance(value, dict):
            return {key: self.resolve(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.resolve(item) for item in value]
        if not isinstance(value, str):
            return value

        whole = _REFERENCE.fullmatch(value)
        if whole is not None:
            return self._follow(whole)
        return _REFERENCE.sub(self._as_text, value)

    def session(self, value: Any) -> str | None:
        """The session id that `"$new"` or `"$new.sessionId"` means; None for no session."""
        found = self.resolve(value)
        session = found.get("sessionId") if isinstance(found, dict) else found
        return None if session is None else str(session)

    def request(self, name: str) -> object:
        if name not in self.requests:
            raise GoldenError(f"no request is named {name!r}")
        return self.requests[name]

    def _as_text(self, reference: re.Match[str]) -> str:
        known = reference[1] in {"cwd", "id", *self.requests, *self.asked}
        return str(self._follow(reference)) if known else reference[0]

    def _follow(self, reference: re.Match[str]) -> Any:
        name, path = reference[1], [part for part in reference[2].split(".") if part]
        if name == "cwd":
            return self._cwd + reference[2]  # `$cwd.txt` is a file name, not a path into a value
        if name == "id" and path:
            return self.request(path[0])

        value: Any
        if name in self.requests:
            value = self._result_of(self.requests[name])
        elif name in self.asked:
            value = self.asked[name]["params"]
        else:
            raise GoldenError(f"{reference[0]} refers to nothing")

        for part in path:
            try:
                value = value[int(part) if isinstance(value, list) else part]
            except (KeyError, IndexError, TypeError, ValueError):
                raise GoldenError(f"{reference[0]}: there is no {part!r} in {value!r}") from None
        return value
