"""The line of one streamed delta, with everything but the text encoded once per message. Pure.

A delta is the one thing there are tens of thousands of: building its update as a dict costs four times
what encoding its text does. The bytes are those of `update_out` and orjson, which a test holds them to.
"""

from typing import Any

import orjson

from acp_server.codec.update_out import SURELY_SHORT, chunk_updates
from agent_loop import AssistantChunk, ReasoningDelta, TextDelta

_MARK = "\x00"
_MARK_BYTES = orjson.dumps(_MARK)


def update_message(session_id: str, update: dict[str, Any]) -> dict[str, Any]:
    """The `session/update` notification of one update."""
    return {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": session_id, "update": update},
    }


class ChunkLine:
    """The lines of one session's deltas; remembers the envelope of the message being streamed."""

    __slots__ = ("_attempt", "_delta", "_head", "_session_id", "_step", "_tail", "_turn")

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._delta: type = object
        self._turn = self._step = self._attempt = 0
        self._head = self._tail = b""

    def line(self, fact: AssistantChunk) -> bytes | None:
        """The line, newline included; None for a chunk that is no plain, short delta with text."""
        chunk = fact.chunk
        if type(chunk) is not TextDelta and type(chunk) is not ReasoningDelta:
            return None
        text = chunk.text
        if not text or len(text) > SURELY_SHORT:
            return None
        if (
            type(chunk) is not self._delta
            or fact.step != self._step
            or fact.turn != self._turn
            or fact.attempt != self._attempt
        ):
            self._remember(fact, type(chunk))
        return self._head + orjson.dumps(text) + self._tail

    def _remember(self, fact: AssistantChunk, delta: type[TextDelta] | type[ReasoningDelta]) -> None:
        self._delta, self._turn, self._step, self._attempt = delta, fact.turn, fact.step, fact.attempt
        [update] = chunk_updates(AssistantChunk(fact.turn, fact.step, fact.attempt, delta(0, _MARK)))
        line = orjson.dumps(update_message(self._session_id, update), option=orjson.OPT_APPEND_NEWLINE)
        self._head, _, self._tail = line.rpartition(_MARK_BYTES)
