"""Checks and freezes open JSON payloads where they enter the log.

Typed facts need no check; what a plugin or a caller hands over as plain JSON does, because
orjson writes NaN as null silently and refuses lone surrogates only when the row is written.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_MAX_DEPTH = 200
_INT64 = 2**63


def freeze_json(value: Any) -> Any:
    """A deep, read-only copy of a lossless JSON value.

    Raises:
        ValueError: Something in it would not survive JSON unchanged; the message says where.
    """
    return _freeze(value, "$", 0)


def clean_text(text: str) -> str:
    """`text` without lone surrogates, which no JSON line can carry; they become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def thaw_json(value: Any) -> Any:
    """A plain dict-and-list copy of what `freeze_json` made, for a serialiser."""
    if isinstance(value, Mapping):
        return {key: thaw_json(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [thaw_json(item) for item in value]
    return value


def _freeze(value: Any, path: str, depth: int) -> Any:
    """Text and numbers come out as exact `str`, `int` and `float`: orjson refuses some subclasses of them."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"{path} is nested deeper than {_MAX_DEPTH} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if clean_text(value) != value:
            raise ValueError(f"{path} holds a lone surrogate, which is not JSON text")
        return str.__str__(value)
    if isinstance(value, int):
        if not -_INT64 <= value < _INT64:
            raise ValueError(f"{path} is an integer of more than 64 bits")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{path} is {value}, which is not JSON")
        return float(value)
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise ValueError(f"{path} has the key {key!r}, which is not text")
        return MappingProxyType(
            {
                _freeze(key, f"a key of {path}", depth): _freeze(item, f"{path}.{key}", depth + 1)
                for key, item in value.items()
            }
        )
    if isinstance(value, list | tuple):
        return tuple(_freeze(item, f"{path}[{at}]", depth + 1) for at, item in enumerate(value))
    raise ValueError(f"{path} is a {type(value).__name__}, which is not JSON")
