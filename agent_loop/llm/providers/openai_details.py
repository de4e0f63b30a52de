"""Gathers the `reasoning_details` of an answer: thoughts as gateways pass them on, signatures and all.

Rules.
1. Pieces belong together by `index` and `type`; their texts are joined, and of the rest the last word counts.
2. They go back in one list, as they came, if the model behind signed or encrypted any: it wants these
   unmodified. Plain words are in the log already.
"""

from typing import Any, Final

from agent_loop.jsonvalue import freeze_json
from agent_loop.llm.providers.event_json import text_in
from agent_loop.messages import Json

_JOINED: Final = ("text", "summary", "data")


class Details:
    """The details of one answer while it arrives."""

    def __init__(self) -> None:
        self._pieces: dict[tuple[Any, str], Json] = {}

    def feed(self, details: list[Json]) -> str:
        """Take the details of one event; returns the words in them that a person can read."""
        said = ""

        for place, piece in enumerate(details):
            given = {name: value for name, value in piece.items() if value is not None}
            whole = self._pieces.setdefault((given.get("index", place), text_in(given["type"])), {})

            for name, value in given.items():
                whole[name] = whole.get(name, "") + text_in(value) if name in _JOINED else value

            said += given.get("text") or given.get("summary") or ""

        return said

    def opaque(self) -> Any:
        """What to give back with the thoughts (`Reasoning.opaque`); None when there is nothing."""
        pieces = list(self._pieces.values())
        signed = any("signature" in piece or "data" in piece for piece in pieces)
        return freeze_json({"reasoning_details": pieces}) if signed else None
