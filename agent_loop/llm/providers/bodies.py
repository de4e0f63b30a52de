"""What the bodies of requests have in common, whichever format they are written in.

Pure. The words for what a format cannot carry stand here, so that every model is told the same.
"""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from agent_loop.messages import Json

NO_OUTPUT: Final = "(no output)"


def picture_note(mime_type: str) -> str:
    """What stands where a picture was, for a model that cannot be shown it."""
    return f"(a picture of type {mime_type}, which you cannot be shown)"


def body_bytes(body: Json) -> bytes:
    """The body as it is sent: the same body is the same bytes.

    Raises:
        TypeError: Something in it is no JSON; a bug of ours.
    """
    return orjson.dumps(body, default=_plain)


def arguments_out(raw: str, *, must_be_object: bool) -> str:
    """What the model wrote as arguments, as JSON; the result of the call has told it when it was none."""
    if not raw.strip():
        return "{}"

    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return _unreadable(raw)

    return raw if isinstance(value, dict) or not must_be_object else _unreadable(raw)


def _unreadable(raw: str) -> str:
    return orjson.dumps({"unreadable": raw}).decode()


def _plain(value: Any) -> Any:
    """What orjson cannot write by itself: a schema frozen in read-only mappings."""
    if isinstance(value, Mapping):
        return dict(value)

    raise TypeError(f"{type(value).__name__} is not JSON")
