"""What a person sees of a tool call, in no editor's format.

Facts carry cards, so a replay needs neither the tool nor the disk. Turning one into ACP belongs
to `acp_server.codec.card_out`.
"""

from dataclasses import field
from typing import Any, Literal, assert_never, get_args

from agent_loop.jsonvalue import thaw_json
from agent_loop.messages import Json
from agent_loop.record import record, replace

CardKind = Literal["read", "edit", "delete", "move", "search", "execute", "fetch", "think", "other"]
CardStatus = Literal["pending", "running", "done", "failed", "cancelled"]


@record
class CardText:
    """Prose; Markdown."""

    text: str


@record
class CardCode:
    """Text to be shown as it stands, with the language a highlighter would want (may be empty)."""

    text: str
    language: str = ""


@record
class CardDiff:
    """One file's change. `path` is absolute; `old` is None for a new file."""

    path: str
    old: str | None
    new: str


@record
class CardOutput:
    """What a command printed; `truncated` when part of it was left out."""

    text: str
    truncated: bool = False


CardItem = CardText | CardCode | CardDiff | CardOutput


@record
class Location:
    """A place the call touches: an absolute path, and a line counted from 1 when one matters."""

    path: str
    line: int | None = None


@record
class Card:
    """A tool call as a person reads it.

    Attributes:
        title: One line: the exact command, or the path relative to the session's root.
        input: The arguments as JSON, bounded; None when they add nothing.
        terminal: Of a command whose output it shows, the directory it runs in; None for any other call.
    """

    kind: CardKind
    title: str
    body: tuple[CardItem, ...] = ()
    locations: tuple[Location, ...] = ()
    input: Any = None
    status: CardStatus = field(default="pending")
    terminal: str | None = None

    def with_status(self, status: CardStatus, body: tuple[CardItem, ...] | None = None) -> "Card":
        """The same card further on; `body` replaces what it shows when given."""
        return replace(self, status=status, body=self.body if body is None else body)


def card_to_json(card: Card) -> Json:
    """A card as JSON, losslessly; `card_from_json` is the way back."""
    value: Json = {"kind": card.kind, "title": card.title, "status": card.status}
    if card.body:
        value["body"] = [_item_to_json(item) for item in card.body]
    if card.locations:
        value["locations"] = [{"path": at.path, "line": at.line} for at in card.locations]
    if card.input is not None:
        value["input"] = thaw_json(card.input)
    if card.terminal is not None:
        value["terminal"] = card.terminal
    return value


def card_from_json(value: Json) -> Card:
    """A card from what `card_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: The value was not written by this house.
    """
    if value["status"] not in get_args(CardStatus):
        raise ValueError(f"unknown status {value['status']!r}")
    return Card(
        kind=value["kind"],
        title=value["title"],
        body=tuple(_item_from_json(item) for item in value.get("body", ())),
        locations=tuple(Location(at["path"], at["line"]) for at in value.get("locations", ())),
        input=value.get("input"),
        terminal=value.get("terminal"),
        status=value["status"],
    )


def _item_to_json(item: CardItem) -> Json:
    match item:
        case CardText(text):
            return {"type": "text", "text": text}
        case CardCode(text, language):
            return {"type": "code", "text": text, "language": language}
        case CardDiff(path, old, new):
            return {"type": "diff", "path": path, "old": old, "new": new}
        case CardOutput(text, truncated):
            return {"type": "output", "text": text, "truncated": truncated}
        case _:
            assert_never(item)


def _item_from_json(value: Json) -> CardItem:
    match value["type"]:
        case "text":
            return CardText(value["text"])
        case "code":
            return CardCode(value["text"], value["language"])
        case "diff":
            return CardDiff(value["path"], value["old"], value["new"])
        case "output":
            return CardOutput(value["text"], value["truncated"])
        case other:
            raise ValueError(f"unknown card item type {other!r}")
