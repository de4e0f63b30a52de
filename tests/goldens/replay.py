"""Live = replay = history: what an editor sees after session/load is what it saw while it happened.

Owns the projection both sides are folded to. Pieces of one messageId join; the reports on one tool call merge
into one card at the place it was announced, and what a terminal is told into one text; user chunks, live output of
a running tool, notices, usage and session news are left out. A card that ends with a terminal of the editor's own is
compared without its content: that terminal is gone when the session is loaded. Running the second process belongs to
`runner`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tests.doubles.transcript import Line, is_update, request_id_key
from tests.goldens.golden import Json

__all__ = ["live_updates", "project", "replay_faults", "unanswered_sessions"]

_LEFT_OUT = frozenset(
    {
        "user_message_chunk",
        "usage_update",
        "notice",
        "session_info_update",
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
    }
)


def live_updates(lines: Sequence[Line], session: str) -> list[Json]:
    """The updates of one session as they happened: replays, between a load and its answer, left out."""
    updates: list[Json] = []
    loads: set[str] = set()
    for line in lines:
        if line.sender == "editor" and line.method == "session/load" and line.session == session:
            loads.add(request_id_key(line.request_id))
        elif line.sender == "agent" and line.is_response:
            loads.discard(request_id_key(line.request_id))
        elif is_update(line, session) and not loads:
            updates.append(line.update)
    return updates


def unanswered_sessions(lines: Sequence[Line]) -> set[str]:
    """Sessions with a prompt that got no answer: their process ended under them, so nothing is promised."""
    answered = {
        request_id_key(line.request_id) for line in lines if line.sender == "agent" and line.is_response
    }
    prompts = [line for line in lines if line.sender == "editor" and line.method == "session/prompt"]
    return {str(line.session) for line in prompts if request_id_key(line.request_id) not in answered}


def project(updates: Iterable[Json]) -> list[Json]:
    """What a person sees in the end."""
    seen: list[Json] = []
    by_id: dict[tuple[str, str], Json] = {}
    for update in updates:
        kind = update["sessionUpdate"]
        if kind in _LEFT_OUT:
            continue
        if kind in ("tool_call", "tool_call_update"):
            _merge_card(by_id, seen, update)
        elif kind in ("agent_message_chunk", "agent_thought_chunk"):
            _join_chunk(by_id, seen, update)
        else:
            seen.append(update)
    return seen


def replay_faults(live: Iterable[Json], replayed: Iterable[Json]) -> Iterator[str]:
    """Where the two projections part."""
    one, other = project(live), project(replayed)
    for number, (was, replay) in enumerate(zip(one, other, strict=False), 1):
        if _ends_in_the_editors_terminal(was):
            was.pop("content")
            replay.pop("content", None)
        if was != replay:
            yield f"item {number} of the session was {was} and is replayed as {replay}"
            return
    if len(one) != len(other):
        missing = one[len(other) :] or other[len(one) :]
        yield f"live has {len(one)} items and the replay {len(other)}: {missing}"


def _merge_card(by_id: dict[tuple[str, str], Json], seen: list[Json], update: Json) -> None:
    key = ("tool", update["toolCallId"])
    if key not in by_id:
        by_id[key] = {}
        seen.append(by_id[key])
    is_final = update.get("status") in ("completed", "failed")
    is_first = update["sessionUpdate"] == "tool_call"
    meta = update.get("_meta", {})
    if (told := meta.get("terminal_output")) is not None:
        by_id[key]["terminal"] = by_id[key].get("terminal", "") + told["data"]
    by_id[key].update((name, meta[name]) for name in ("terminal_info", "terminal_exit") if name in meta)
    for name, value in update.items():
        live_only = name in ("content", "rawOutput") and not (is_final or is_first)
        if value is not None and name not in ("sessionUpdate", "_meta") and not live_only:
            by_id[key][name] = value


def _ends_in_the_editors_terminal(item: Json) -> bool:
    return any(
        part["type"] == "terminal" and part["terminalId"] != item["toolCallId"]
        for part in item.get("content", ())
        if "toolCallId" in item
    )


def _join_chunk(by_id: dict[tuple[str, str], Json], seen: list[Json], update: Json) -> None:
    kind, content = update["sessionUpdate"], update["content"]
    key = (kind, str(update.get("messageId")))
    if content["type"] != "text":
        seen.append(update)
    elif key in by_id:
        by_id[key]["text"] += content["text"]
    else:
        by_id[key] = {"kind": kind, "messageId": update.get("messageId"), "text": content["text"]}
        seen.append(by_id[key])
