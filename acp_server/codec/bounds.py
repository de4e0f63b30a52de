"""Keeps every field on the wire small, and says so where something was left out. Pure."""

from collections.abc import Iterator
from typing import Final

FIELD_LIMIT_BYTES: Final = 32 * 1024


def bounded(text: str, limit_bytes: int = FIELD_LIMIT_BYTES) -> str:
    """`text` when it is short; else its head and tail around a line saying how much is missing."""
    raw = text.encode()
    if len(raw) <= limit_bytes:
        return text
    half = limit_bytes // 2
    head = raw[:half].decode(errors="ignore")
    tail = raw[-half:].decode(errors="ignore")
    return f"{head}\n[… {len(raw) - 2 * half} bytes left out …]\n{tail}"


def pieces(text: str, limit_bytes: int = FIELD_LIMIT_BYTES) -> Iterator[str]:
    """`text`, whole, in pieces of at most `limit_bytes`, cut between characters; none for no text."""
    raw = text.encode()
    start = 0
    while start < len(raw):
        end = min(start + limit_bytes, len(raw))
        while end < len(raw) and raw[end] & 0xC0 == 0x80:
            end -= 1
        yield raw[start:end].decode()
        start = end
