"""What the demo holds every frame of the agent to: JSON-RPC 2.0 and the part of ACP it can see.

Written apart from the server's own types, so that it cannot share their mistakes. Stdlib only.
Source: https://agentclientprotocol.com/protocol/v1/schema
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

Frame = dict[str, Any]

CHUNKS: Final = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
ANY_TIME: Final = (
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
)
"""Updates that belong to no turn, and may follow its answer."""

KNOWN: Final = (*CHUNKS, *ANY_TIME, "tool_call", "tool_call_update", "plan")
KINDS: Final = (
    *("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"),
)
STATUSES: Final = ("pending", "in_progress", "completed", "failed")
FINAL: Final = ("completed", "failed")
STOP_REASONS: Final = ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
CONTENT: Final = ("content", "diff", "terminal")
OPTION_KINDS: Final = ("allow_once", "allow_always", "reject_once", "reject_always")


@dataclass
class Card:
    """A tool call as far as it is known."""

    title: str
    kind: str
    status: str
    content: list[Frame]

    @property
    def text(self) -> str:
        """The words in its content, without diffs."""
        return "\n".join(item["content"].get("text", "") for item in self.content if "content" in item)


@dataclass(frozen=True)
class Permission:
    """A permission asked for; `allow` is the option that says yes once."""

    title: str
    kind: str
    options: list[Frame]
    allow: Frame


class Frames:
    """Everything the agent said, checked.

    Attributes:
        session: The one session there is; empty until it is known.
        faults: What was wrong, in words.
        cards: Tool calls by id.
        asked: Kinds of the calls permission was asked for.
    """

    def __init__(self) -> None:
        self.session = ""
        self.faults: list[str] = []
        self.cards: dict[str, Card] = {}
        self.asked: list[str] = []
        self._open: dict[object, str] = {}
        self._asked_ids: list[object] = []
        self._last_id = 0
        self._answered = False

    def ask(self, method: str) -> int:
        """The id for our next request."""
        self._last_id += 1
        self._open[self._last_id] = method
        return self._last_id

    def see(self, line: bytes) -> Frame | None:
        """The frame of one line; None when it is no use, which is a fault, as is all else that is wrong."""
        try:
            frame = json.loads(line)
        except ValueError:
            frame = None
        if not isinstance(frame, dict) or frame.get("jsonrpc") != "2.0":
            self.faults.append(f"a line is no JSON-RPC 2.0 object: {line[:80]!r}")
            return None

        if "method" not in frame:
            faults = list(self._response(frame))
        elif "id" in frame:
            faults = list(self._request(frame))
        else:
            faults = list(self._notification(frame))
        self.faults += faults
        return None if faults else frame

    def permission(self, frame: Frame) -> Permission:
        """The question a right request asks."""
        params = frame["params"]
        card = self.cards[params["toolCall"]["toolCallId"]]
        allow = next(option for option in params["options"] if option["kind"] == "allow_once")
        return Permission(card.title, card.kind, params["options"], allow)

    def _response(self, frame: Frame) -> Iterator[str]:
        number, error = frame.get("id"), frame.get("error")
        method = self._open.pop(number, None) if type(number) is int else None
        if method is None:
            yield f"a response to a request that is not open: {number!r}"
        if ("result" in frame) == ("error" in frame):
            yield f"the response {number!r} must hold either a result or an error"
        elif "error" in frame and not _is_error(error):
            yield f"the error of response {number!r} needs a code and a message"
        elif method == "session/prompt":
            self._answered = True
            # Faults, but no reason to go on waiting for a better answer.
            self.faults += self._end_of_turn(frame.get("result"))

    def _end_of_turn(self, result: Any) -> Iterator[str]:
        reason = result.get("stopReason") if isinstance(result, dict) else None
        if result is not None and reason not in STOP_REASONS:
            yield f"no stop reason of ACP: {reason!r}"
        for call_id, card in self.cards.items():
            if card.status not in FINAL:
                yield f"the prompt was answered while the call {call_id!r} was {card.status}"

    def _request(self, frame: Frame) -> Iterator[str]:
        method, params, number = frame["method"], frame.get("params"), frame["id"]
        if not isinstance(number, int | str) or number in self._asked_ids:
            yield f"the agent's request id {number!r} is not fit or was used before"
        self._asked_ids.append(number)
        if self._answered:
            yield f"the agent asked {method!r} after the prompt was answered"
        if method != "session/request_permission":
            yield f"the agent asked {method!r}, which this editor does not offer"
            return

        if not isinstance(params, dict) or params.get("sessionId") != self.session:
            yield "a permission request does not name our session"
            return
        call, options = params.get("toolCall"), params.get("options")
        card = self.cards.get(str(call.get("toolCallId"))) if isinstance(call, dict) else None
        if card is None:
            yield "permission was asked for a call that was not announced"
        elif not isinstance(options, list) or not all(map(_is_option, options)):
            yield "each permission option needs an optionId, a name and a kind of ACP"
        elif not any(option["kind"] == "allow_once" for option in options):
            yield "no permission option allows once"
        else:
            self.asked.append(card.kind)

    def _notification(self, frame: Frame) -> Iterator[str]:
        method, params = frame["method"], frame.get("params")
        if method != "session/update":
            yield f"an unknown notification: {method!r}"
            return

        update = params.get("update") if isinstance(params, dict) else None
        if not isinstance(params, dict) or not isinstance(update, dict):
            yield "a session/update without an update"
            return
        if params.get("sessionId") != self.session:
            yield f"a session/update of a session we do not know: {params.get('sessionId')!r}"
            return

        kind = update.get("sessionUpdate")
        if kind not in KNOWN:
            yield f"no sessionUpdate of ACP: {kind!r}"
        elif self._answered and kind not in ANY_TIME:
            yield f"{kind} came after the prompt was answered"
        elif kind in CHUNKS and not _is_block(update.get("content")):
            yield f"{kind} needs a content block"
        elif kind == "tool_call":
            yield from self._announced(update)
        elif kind == "tool_call_update":
            yield from self._changed(update)
        elif kind == "plan" and not isinstance(update.get("entries"), list):
            yield "a plan needs entries"

    def _announced(self, update: Frame) -> Iterator[str]:
        call_id, title = update.get("toolCallId"), update.get("title")
        if not isinstance(call_id, str) or not isinstance(title, str):
            yield "a tool_call needs a toolCallId and a title"
            return
        if call_id in self.cards:
            yield f"the call {call_id!r} was announced twice"
            return
        card = Card(title, "other", "pending", [])
        self.cards[call_id] = card
        yield from _apply(update, card)

    def _changed(self, update: Frame) -> Iterator[str]:
        call_id = update.get("toolCallId")
        card = self.cards.get(str(call_id))
        if card is None:
            yield f"tool_call_update for {call_id!r}, which was not announced"
            return
        if card.status in FINAL:
            yield f"the call {call_id!r} changed after it was {card.status}"
        yield from _apply(update, card)


def _apply(update: Frame, card: Card) -> Iterator[str]:
    """Put the fields an update carries on its card."""
    kind, status = update.get("kind", card.kind), update.get("status", card.status)
    content, title = update.get("content", card.content), update.get("title", card.title)
    if kind not in KINDS:
        yield f"no tool kind of ACP: {kind!r}"
    elif status not in STATUSES:
        yield f"no tool status of ACP: {status!r}"
    elif not isinstance(title, str):
        yield "a title must be text"
    elif not isinstance(content, list) or not all(map(_is_content, content)):
        yield "a tool call's content must be content blocks, diffs or terminals"
    else:
        card.kind, card.status, card.content, card.title = kind, status, content, title


def _is_block(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return False
    return value["type"] != "text" or isinstance(value.get("text"), str)


def _is_content(value: Any) -> bool:
    match value:
        case {"type": "content", "content": block}:
            return _is_block(block)
        case {"type": "diff", "path": str(), "newText": str()}:
            return isinstance(value.get("oldText"), str | None)
        case {"type": "terminal", "terminalId": str()}:
            return True
        case _:
            return False


def _is_option(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.get("kind") in OPTION_KINDS
        and _has_texts(value, "optionId", "name")
    )


def _is_error(value: Any) -> bool:
    return isinstance(value, dict) and type(value.get("code")) is int and _has_texts(value, "message")


def _has_texts(value: Frame, *keys: str) -> bool:
    return all(isinstance(value.get(key), str) for key in keys)
