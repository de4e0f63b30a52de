"""Reads the JSON of one event, whoever sent it, and says what must be text or a number."""

import json
from typing import Any

import orjson


def event_value(event: bytes) -> Any:
    """The value of an event's data.

    Raises:
        ValueError, RecursionError: It is no JSON.
    """
    try:
        return orjson.loads(event)
    except orjson.JSONDecodeError:
        # Gateways that cut text between UTF-16 units send half characters, which orjson refuses.
        return json.loads(event, object_hook=_whole_characters)


def text_in(value: Any) -> str:
    """`value`, which must be text.

    Raises:
        TypeError: It is something else.
    """
    if type(value) is not str:
        raise TypeError(f"expected text, not {type(value).__name__}")

    return value


def number_in(value: Any) -> int:
    """`value`, which must be a whole number.

    Raises:
        TypeError: It is something else.
    """
    if type(value) is not int:
        raise TypeError(f"expected a whole number, not {type(value).__name__}")

    return value


def _whole_characters(value: dict[str, Any]) -> dict[str, Any]:
    return {key: _whole(item) if isinstance(item, str) else item for key, item in value.items()}


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
