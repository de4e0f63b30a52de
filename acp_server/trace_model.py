"""Model rows of a trace to lines of a scripted model. Pure, stdlib only.

Owns what each call said, how far it was at each row, and where it is held. What a script may hold is
written at `agent_loop/llm/providers/scripted.py`.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

Json = dict[str, Any]

_FINISH: Final = {
    "stop": "stop",
    "tool-calls": "tool_calls",
    "max-tokens": "max_tokens",
    "refusal": "refusal",
}
CUT: Final = "the model's answer was cut off before its end"


class TraceError(Exception):
    """A trace no golden can be made of; `line` is where, counted from 1."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


class Row(NamedTuple):
    """One line of a trace."""

    line: int
    sender: str
    body: Json


@dataclass
class ModelCall:
    """One call as it went.

    Attributes:
        line: Where in the trace it begins.
        items: What it said, piece by piece.
        ending: Usage and how it ended; a call that was stopped, or never ended, hangs.
        stopped: Whether it ends in a hang.
    """

    line: int
    session: str
    request: Json
    items: list[Json] = field(default_factory=list)
    ending: list[Json] = field(default_factory=lambda: [{"hang": True}])
    stopped: bool = True
    _usage: list[Json] = field(default_factory=list)
    _tools: dict[int, Json] = field(default_factory=dict)
    _told: set[int] = field(default_factory=set)
    _holds: list[tuple[int, str]] = field(default_factory=list)

    def hold(self, at: int, name: str) -> None:
        """Wait for `name` before item `at`; holds at one place keep their order."""
        self._holds.append((at, name))

    def performance(self) -> list[Json]:
        """The items of its script line."""
        items: list[Json] = []
        for at, item in enumerate([*self.items, None]):
            items += [{"hold": name} for place, name in self._holds if place == at]
            items += [_with_arguments(item)] if item is not None else []
        return [*items, *self.ending]

    def say(self, chunk: Json) -> None:
        """Take the next chunk. Raises KeyError or TypeError when it is none."""
        index = chunk.get("index", -1)
        match chunk["type"]:
            case "text-delta":
                self._tell(index, {"text": chunk["text"]})
            case "reasoning-delta":
                self._tell(index, {"think": chunk["text"]})
            case "tool-call-delta":
                item = self._tool(index)
                item["id"] = chunk["id"] or item["id"]
                item["tool"] = chunk["name"] or item["tool"]
                item["args_raw"] += chunk["arguments"]
            case "block-end":
                self._end_block(index, chunk.get("block"))
            case "usage":
                usage = chunk["usage"]
                self._usage = [{"usage": {"in": usage["inputTokens"], "out": usage["outputTokens"]}}]
            case "finish" if chunk["kind"] == "error":
                self._raise({"kind": chunk["errorKind"], "message": chunk["message"]})
            case "finish" if chunk["kind"] == "aborted":
                self._raise({"kind": "unknown", "message": "the provider stopped its answer"})
            case "finish":
                self._finish({"finish": _FINISH[chunk["kind"]]})
            case "block-start":
                pass
            case other:
                raise KeyError(other)

    def end(self, how: Json) -> None:
        """Take the end. Raises KeyError when it is none."""
        if "error" in how:
            self._raise({"kind": how["error"]["kind"], **how["error"]})
        elif "cancelled" not in how and how["finish"] is None:
            self._raise({"kind": "transport", "message": CUT})

    def progress(self) -> int:
        """How many items are complete: a tool call is only once all of it was said."""
        still_open = (
            at for at, item in enumerate(self.items) if any(item is t for t in self._tools.values())
        )
        return next(still_open, len(self.items))

    def _tell(self, index: int, item: Json) -> None:
        self._told.add(index)
        self.items.append(item)

    def _tool(self, index: int) -> Json:
        if index not in self._tools:
            self._tools[index] = {"tool": "", "id": "", "args_raw": ""}
            self._tell(index, self._tools[index])
        return self._tools[index]

    def _end_block(self, index: int, block: Json | None) -> None:
        match block:
            case {"type": "tool-call", "id": call_id, "name": name, "arguments": arguments}:
                self._tool(index).update(id=call_id, tool=name, args_raw=arguments)
            case {"type": "text", "text": text} if index not in self._told:
                self._tell(index, {"text": text})
            case {"type": "reasoning", "text": text} if text and index not in self._told:
                self._tell(index, {"think": text})
        self._tools.pop(index, None)

    def _raise(self, error: Json) -> None:
        self._finish({"raise": error})

    def _finish(self, item: Json) -> None:
        self._tools.clear()
        self.ending = [*self._usage, item]
        self.stopped = False


class ModelCalls:
    """Every call of a trace, in the order they began.

    Attributes:
        began: Row index → the call that begins there.
        reached: Row index → the call that spoke there, and its progress.
        ended: Row indices at which a call ends.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.began: dict[int, ModelCall] = {}
        self.reached: dict[int, tuple[ModelCall, int]] = {}
        self.ended: dict[int, ModelCall] = {}
        numbered: dict[int, ModelCall] = {}
        for at, row in enumerate(rows):
            if row.sender == "model":
                self._take(at, row, numbered)

    def __iter__(self) -> Iterator[ModelCall]:
        return iter(self.began.values())

    def _take(self, at: int, row: Row, numbered: dict[int, ModelCall]) -> None:
        match row.body:
            case {"session": str(session), "call": int(number), "request": dict(request)}:
                self.began[at] = numbered[number] = ModelCall(row.line, session, request)
                return
            case {"call": int(number)} if number in numbered:
                call = numbered[number]
            case _:
                raise TraceError(row.line, "a model row names no call that began before it")
        try:
            if "chunk" in row.body:
                call.say(row.body["chunk"])
                self.reached[at] = (call, call.progress())
            else:
                call.end(row.body["end"])
                self.ended[at] = call
        except (KeyError, TypeError, AttributeError) as error:
            raise TraceError(row.line, f"not what a model says: {error!r}") from error


def _with_arguments(item: Json) -> Json:
    """A tool item with readable arguments, where the model's are an object."""
    if "tool" not in item:
        return item
    named = {key: item[key] for key in ("tool", "id") if item[key]}
    try:
        arguments = json.loads(item["args_raw"])
    except ValueError:
        arguments = None
    return (
        {**named, "args": arguments}
        if isinstance(arguments, dict)
        else {**named, "args_raw": item["args_raw"]}
    )
