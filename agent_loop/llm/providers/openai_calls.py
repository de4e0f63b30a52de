"""Tells the pieces of parallel tool calls apart, for servers that mark them in different ways.

Rules.
1. Pieces belong together by `index`, else by `id`, else by their place in the event.
2. A new id that comes with a name starts a new call under an index that was used before; so does a name
   alone, when nothing else tells the call from the one before it.
3. An id and a name are passed on once, whenever they come; arguments as they come.
"""

from typing import Any

import orjson

from agent_loop.chunks import Chunk, ToolCallDelta
from agent_loop.llm.providers.event_json import text_in


class Calls:
    """Tells the pieces of parallel tool calls apart."""

    def __init__(self) -> None:
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._by_place: dict[int, _Call] = {}

    def __bool__(self) -> bool:
        return bool(self._by_place)

    def feed(self, place: int, piece: Any, next_index: int, chunks: list[Chunk]) -> int:
        """Append the chunk for one piece, if it says anything; returns the next free block index."""
        function = piece.get("function") or {}
        call_id, name = text_in(piece.get("id") or ""), text_in(function.get("name") or "")
        arguments = function.get("arguments") or ""
        index = piece.get("index")

        if not isinstance(arguments, str):
            arguments = orjson.dumps(arguments).decode()

        call = self._find(place, index, call_id, name)
        opens = call is None

        if call is None:
            call = _Call(next_index)
            next_index += 1

        new_id, new_name = "" if call.id else call_id, "" if call.name else name
        call.id, call.name = call.id or call_id, call.name or name

        self._by_place[place] = call
        if call_id:
            self._by_id[call_id] = call
        if index is not None:
            self._by_index[index] = call

        if opens or new_id or new_name or arguments:
            chunks.append(ToolCallDelta(call.index, new_id, new_name, arguments))

        return next_index

    def _find(self, place: int, index: int | None, call_id: str, name: str) -> "_Call | None":
        if index is not None:
            call = self._by_index.get(index)
            another = call is not None and call.id and call_id and call.id != call_id and name
            return None if another else call

        if call_id:
            return self._by_id.get(call_id)

        call = self._by_place.get(place)
        return None if call is not None and call.name and name else call


class _Call:
    __slots__ = ("id", "index", "name")

    def __init__(self, index: int) -> None:
        self.index = index
        self.id = ""
        self.name = ""
