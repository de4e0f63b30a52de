"""Keeps what tools say to the model and show to the person within bounds, and fit for a JSON line."""

from typing import Any

import orjson

from agent_loop.cards import Card, card_to_json
from agent_loop.jsonvalue import clean_text, freeze_json
from agent_loop.messages import Content, Text, text_of
from agent_loop.record import replace
from agent_loop.workspace.output import bounded_text

CONTENT_LIMIT_BYTES = 64_000
INPUT_LIMIT_BYTES = 8 * 1024
_NOTE_BYTES = 100


def bounded_content(content: tuple[Content, ...]) -> tuple[Content, ...]:
    """What the model may be told: text without lone surrogates, its head and tail when it is too long.

    Texts that are too long together become one, before whatever else there is.
    """
    texts = [block for block in content if isinstance(block, Text)]
    cleaned = clean_text(text_of(tuple(texts)))
    size = len(cleaned.encode())

    if size > CONTENT_LIMIT_BYTES:
        others = tuple(block for block in content if not isinstance(block, Text))
        return (Text(bounded_text(cleaned, CONTENT_LIMIT_BYTES - _NOTE_BYTES).text), *others)

    return tuple(
        replace(block, text=clean_text(block.text)) if isinstance(block, Text) else block for block in content
    )


def bounded_input(value: Any) -> Any:
    """Arguments as a card carries them: JSON of at most 8 KiB, long texts shortened first."""
    for limit in (INPUT_LIMIT_BYTES, 2048, 512, 128):
        shorter = _shortened(value, limit)
        try:
            if len(orjson.dumps(shorter)) <= INPUT_LIMIT_BYTES:
                return shorter
        except orjson.JSONEncodeError:  # too deep, or a number beyond 64 bits
            break

    return bounded_text(clean_text(str(value)), INPUT_LIMIT_BYTES // 8).text


def check_card(card: Card) -> Card:
    """The card itself, when a log can carry it.

    Raises:
        ValueError: Something in it is not JSON; the message says where.
    """
    freeze_json(card_to_json(card))
    return card


def _shortened(value: Any, limit_bytes: int) -> Any:
    if isinstance(value, str):
        return bounded_text(clean_text(value), limit_bytes).text
    if isinstance(value, dict):
        return {clean_text(key): _shortened(item, limit_bytes) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shortened(item, limit_bytes) for item in value]
    return value
