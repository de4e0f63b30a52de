"""Which files are pictures a model can be shown. Pure."""

import re
from collections.abc import Mapping
from typing import Final

_MAGIC: Final[Mapping[str, re.Pattern[bytes]]] = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}

PICTURE_KINDS: Final = tuple(_MAGIC)
"""What every maker takes."""

PICTURE_LIMIT_BYTES: Final = 3_750_000
"""Base64 makes five megabytes of it. A bigger one is refused by one maker or another, and then with every
later request of the session, for it is in its history."""


def picture_kind(content: bytes) -> str | None:
    """The media type by the first bytes, whatever the name says; None for what is no such picture."""
    return next((kind for kind, magic in _MAGIC.items() if magic.match(content)), None)
