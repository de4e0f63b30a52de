"""Cards to ACP tool-call fields. Pure.

Source: https://agentclientprotocol.com/protocol/v1/tool-calls
"""

from typing import Any, Final, assert_never

from acp_server.codec.bounds import FIELD_LIMIT_BYTES, bounded
from agent_loop import Card, CardCode, CardDiff, CardItem, CardOutput, CardStatus, CardText, thaw_json

STATUS: Final[dict[CardStatus, str]] = {
    "pending": "pending",
    "running": "in_progress",
    "done": "completed",
    "failed": "failed",
    "cancelled": "failed",
}
"""ACP v1 has no status for a cancelled call."""


def card_out(card: Card) -> dict[str, Any]:
    """Title, kind, status and, where the card has any, content, locations and rawInput."""
    fields: dict[str, Any] = {
        "title": bounded(card.title),
        "kind": card.kind,
        "status": STATUS[card.status],
    }
    if card.body:
        fields["content"] = content_out(card.body)
    if card.locations:
        fields["locations"] = [
            {"path": at.path} if at.line is None else {"path": at.path, "line": at.line}
            for at in card.locations
        ]
    if card.input is not None:
        fields["rawInput"] = thaw_json(card.input)
    return fields


def content_out(body: tuple[CardItem, ...]) -> list[dict[str, Any]]:
    """The items of a card's body, each bounded."""
    return [_item_out(item) for item in body]


def text_out(text: str) -> dict[str, Any]:
    """One piece of prose as tool-call content."""
    return {"type": "content", "content": {"type": "text", "text": bounded(text)}}


def output_out(text: str, truncated: bool) -> dict[str, Any]:
    """What a command printed, fenced so that no client reads it as Markdown."""
    note = "\n[part of the output is left out]" if truncated else ""
    return {
        "type": "content",
        "content": {"type": "text", "text": _fenced(bounded(text.rstrip("\n")), "console") + note},
    }


def _item_out(item: CardItem) -> dict[str, Any]:
    match item:
        case CardText(text):
            return text_out(text)
        case CardCode(text, language):
            return {"type": "content", "content": {"type": "text", "text": _fenced(bounded(text), language)}}
        case CardOutput(text, truncated):
            return output_out(text, truncated)
        case CardDiff(path, old, new):
            return _diff_out(path, old, new)
        case _:
            assert_never(item)


def _diff_out(path: str, old: str | None, new: str) -> dict[str, Any]:
    sizes = (0 if old is None else len(old.encode()), len(new.encode()))
    if max(sizes) > FIELD_LIMIT_BYTES:
        # A diff with holes would show a file that nobody wrote.
        words = "a new file" if old is None else f"{sizes[0]} bytes now"
        return text_out(
            f"{path}: too large to show as a diff ({words}, {sizes[1]} bytes after).\n\n{bounded(new)}"
        )
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def _fenced(text: str, language: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
