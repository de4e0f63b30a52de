"""Makes what a command printed fit to be read: bounded, decoded, without control sequences.

Bytes are kept as they came, so a flood costs no more than copying; decoding happens when somebody
looks. Keeping all of a long output on disk belongs to `spill`.
"""

import codecs
import re
from collections import deque
from typing import NamedTuple

_LINE_SEARCH_BYTES = 1024


class Seen(NamedTuple):
    """Output fit to be read, and how many bytes of it were left out in the middle."""

    text: str
    omitted_bytes: int


class BoundedOutput:
    """The first and the last half of `limit_bytes`; a note stands where something is missing."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit = limit_bytes
        self._head_limit = limit_bytes // 2
        self._tail_limit = limit_bytes - self._head_limit
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_bytes = 0
        self.total_bytes = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self.total_bytes += len(data)
        room = self._head_limit - len(self._head)
        self._head += data[:room]
        rest = data[room:] if room else data

        if rest:
            self._tail.append(rest)
            self._tail_bytes += len(rest)

        while self._tail and self._tail_bytes - len(self._tail[0]) >= self._tail_limit:
            self._tail_bytes -= len(self._tail.popleft())

    def fits(self, more: int = 0) -> bool:
        """Whether nothing is left out yet, and would not be with `more` bytes."""
        return self.total_bytes + more <= self._limit

    def kept(self) -> bytes:
        """The bytes held; all there were while `fits()`."""
        return bytes(self._head) + b"".join(self._tail)

    def seen(self, *, final: bool) -> Seen:
        """The output as text; unless `final`, a character that has not arrived whole is held back."""
        if self.fits():
            return bounded_text(_readable(self.kept(), final=final), self._limit)

        # Cut at a line's end where one is near: half a line, a character or a control sequence reads badly.
        head = bytes(self._head)
        head = head[: head.rfind(b"\n", max(0, len(head) - _LINE_SEARCH_BYTES)) + 1] or head
        tail = b"".join(self._tail)[-self._tail_limit :]
        tail = tail[tail.find(b"\n", 0, _LINE_SEARCH_BYTES) + 1 :]
        tail = tail.lstrip(_CONTINUATION_BYTES)
        omitted = self.total_bytes - len(head) - len(tail)
        return Seen(
            _first(_readable(head, final=False), self._head_limit)
            + _hole(omitted)
            + _last(_readable(tail, final=final), self._tail_limit),
            omitted,
        )


def bounded_text(text: str, limit_bytes: int) -> Seen:
    """`text` when its UTF-8 fits, else its head and tail with a note between them (which comes on top)."""
    size = len(text) if text.isascii() else len(text.encode())
    if size <= limit_bytes:
        return Seen(text, 0)

    head = _first(text, limit_bytes // 2)
    tail = _last(text, limit_bytes - limit_bytes // 2)
    omitted = size - len(head.encode()) - len(tail.encode())
    return Seen(head + _hole(omitted) + tail, omitted)


def plain_text(text: str) -> str:
    """`text` without control sequences: colours, titles, cursor moves, overstrikes; each CR ends a line."""
    text = _SEQUENCE.sub("", text)
    text = _CARRIAGE_RETURN.sub("\n", text)
    return _REST.sub("", _OVERSTRIKE.sub("", text))


def _readable(data: bytes, *, final: bool) -> str:
    return plain_text(codecs.getincrementaldecoder("utf-8")("replace").decode(data, final))


def _hole(omitted_bytes: int) -> str:
    return f"\n[… {omitted_bytes:,} bytes left out …]\n"


def _first(text: str, limit_bytes: int) -> str:
    return text.encode()[:limit_bytes].decode(errors="ignore")


def _last(text: str, limit_bytes: int) -> str:
    return text.encode()[-limit_bytes:].decode(errors="ignore") if limit_bytes else ""


_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
# A sequence cut off by the end of the text counts: live output stops anywhere.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*(?:[@-~]|\Z)"  # colours, cursor moves
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\|\x1b?\Z)"  # titles, links
    r"|\x1b[PX^_][^\x1b\n]*(?:\x1b\\|\x1b?\Z)"  # strings for the terminal
    r"|\x1b[ -/]*[0-~]?"  # the rest
)
_CARRIAGE_RETURN = re.compile(r"\r+\n?")
_OVERSTRIKE = re.compile(r"[^\n\x08]\x08")
_REST = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
