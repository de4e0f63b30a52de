"""Makes text from models, tools and people harmless to a terminal, and the same for the eye as for a machine.

Escape sequences go, other control characters become visible. HTML is another matter: see `export_html`. Pure.
"""

import re
from typing import Final

from agent_loop import Card, CardCode, CardDiff, CardItem, CardOutput, CardText, Location

# Terminals colour, move and rename things by these; whole ones are left out, what is left is made visible.
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[()][0-9A-B])")
_SHOWN: Final = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
    # They make text read differently from what it is.
    **dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD),
}


def inert(text: str) -> str:
    """`text` without anything a terminal obeys; line ends become newlines."""
    plain = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return plain.translate(_SHOWN)


def one_line(text: str) -> str:
    """`text`, inert, on a line of its own."""
    return " ".join(inert(text).split())


def inert_card(card: Card) -> Card:
    """`card` with every text in it inert."""
    body = tuple(map(_inert_item, card.body))
    places = tuple(Location(one_line(at.path), at.line) for at in card.locations)
    return Card(card.kind, one_line(card.title), body, places, card.input, card.status)


def _inert_item(item: CardItem) -> CardItem:
    match item:
        case CardText(text):
            return CardText(inert(text))
        case CardCode(text, language):
            return CardCode(inert(text), one_line(language))
        case CardDiff(path, old, new):
            return CardDiff(one_line(path), None if old is None else inert(old), inert(new))
        case CardOutput(text, truncated):
            return CardOutput(inert(text), truncated)
