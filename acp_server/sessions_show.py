"""A stored conversation on a terminal, as the demo shows a live one."""

from collections.abc import Iterable, Iterator
from typing import Any

from acp_server.codec.update_out import join_runs, updates_of
from acp_server.conversation import diff_lines, ending
from acp_server.demo_frames import Card
from acp_server.demo_screen import Screen
from acp_server.inert import inert, one_line
from agent_loop import CardDiff, LogRow, TurnEnd


def show(rows: Iterable[LogRow], screen: Screen) -> None:
    """Print what was said and done, oldest first; nothing in it can act on the terminal."""
    cards: dict[str, Card] = {}
    for fact in join_runs(rows):
        if isinstance(fact, TurnEnd):
            screen.ended(ending(fact.reason))
        for update in updates_of(fact, replay=True):
            plain = _inert(update)
            if plain["sessionUpdate"] == "tool_call":
                plain["title"] = one_line(plain["title"])
                cards[plain["toolCallId"]] = Card(plain["title"], plain["kind"], "pending", [])
            if "toolCallId" in plain:
                if plain["toolCallId"] not in cards:
                    continue
                card = cards[plain["toolCallId"]]
                card.status = plain.get("status", card.status)
                if "content" in plain:
                    card.content = [part for item in plain["content"] for part in _hunks(item)]
            screen.update(plain, cards)


def _hunks(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What changed in a file, place by place: a person must not have to read all of it twice."""
    if item["type"] != "diff":
        yield item
        return
    item["path"] = one_line(item["path"])
    if not item["oldText"]:
        yield item
        return
    lines = {"-": "oldText", "+": "newText"}
    part: dict[str, Any] = {}
    for line in diff_lines(CardDiff(item["path"], item["oldText"], item["newText"])):
        if line.startswith("@"):
            if part:
                yield part
            part = {**item, "oldText": "", "newText": ""}
        elif line[:1] in lines:
            part[lines[line[0]]] += f"{line[1:]}\n"
    if part:
        yield part


def _inert(value: Any) -> Any:
    match value:
        case str():
            return inert(value)
        case dict():
            return {key: _inert(item) for key, item in value.items()}
        case list():
            return [_inert(item) for item in value]
        case _:
            return value
