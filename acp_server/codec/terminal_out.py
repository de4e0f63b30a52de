"""Commands as the terminals an editor draws of what it is told of them. Pure.

A convention among editors: a `terminal` item of a tool call, whose id is the call's own, is filled by `_meta`
of the call's updates. `terminal_info` opens it, `terminal_output` adds to it, `terminal_exit` ends it.
"""

from typing import Any

from acp_server.codec.bounds import pieces
from agent_loop import Exit

Fields = dict[str, Any]


def terminal_item(terminal_id: str) -> Fields:
    """A terminal as tool-call content."""
    return {"type": "terminal", "terminalId": terminal_id}


def opened(call_id: str, fields: Fields, cwd: str) -> Fields:
    """A tool call's fields with its terminal, below whatever else it shows."""
    return {
        **fields,
        "content": [*fields.get("content", ()), terminal_item(call_id)],
        "_meta": {"terminal_info": {"terminal_id": call_id, "cwd": cwd}},
    }


def printed(call_id: str, text: str) -> list[Fields]:
    """Fields that add text to the terminal, each short enough for one update."""
    return [{"_meta": {"terminal_output": {"terminal_id": call_id, "data": piece}}} for piece in pieces(text)]


def ended(call_id: str, shown: str, text: str, how: Exit | None) -> list[Fields]:
    """Fields that bring a terminal which shows `shown` to `text`, and end it.

    Where the middle of a long output is left out, what was shown of it stays.
    """
    pairs = enumerate(zip(shown, text, strict=False))
    same = next((at for at, (one, other) in pairs if one != other), min(len(shown), len(text)))
    fields = printed(call_id, text[same:]) or [{}]
    status: Fields = {"terminal_id": call_id}
    if how is not None and how.signal is not None:
        status["signal"] = how.signal
    elif how is not None and how.code is not None:
        status["exit_code"] = how.code
    if len(status) > 1:
        fields[-1].setdefault("_meta", {})["terminal_exit"] = status
    return fields
