"""Bytes to lines, whatever the blocks look like.

Keeps blocks and joins them once per line, so a 12 MiB line costs no quadratic copying; a line over
the cap is dropped as it comes, so memory stays bounded and the stream goes on behind it.
"""

from collections.abc import Callable
from typing import Final

LINE_CAP_BYTES: Final = 64 * 1024 * 1024


class LineFramer:
    """Cuts one byte stream at newlines."""

    def __init__(
        self,
        on_line: Callable[[bytes], None],
        on_oversize: Callable[[int], None],
        *,
        cap_bytes: int = LINE_CAP_BYTES,
    ) -> None:
        self._on_line = on_line
        self._on_oversize = on_oversize
        self._cap = cap_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._over = False

    def feed(self, block: bytes) -> None:
        """Take the next block; calls back for each line it completes."""
        start = 0
        while (end := block.find(b"\n", start)) >= 0:
            self._keep(block[start:end])
            self._finish()
            start = end + 1
        if start < len(block):
            self._keep(block[start:])

    def end(self) -> None:
        """The stream is over: an unterminated last line counts as one."""
        if self._parts or self._over:
            self._finish()

    def _keep(self, part: bytes) -> None:
        if self._over:
            return
        self._size += len(part)
        if self._size > self._cap:
            self._over = True
            self._parts.clear()
        else:
            self._parts.append(part)

    def _finish(self) -> None:
        line, over = b"".join(self._parts), self._over
        self._parts.clear()
        self._size, self._over = 0, False
        if over:
            self._on_oversize(self._cap)
        else:
            self._on_line(line)
