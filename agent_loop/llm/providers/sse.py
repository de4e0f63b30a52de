"""Cuts a server-sent event stream, which may break anywhere, into the data of its events.

Owns bytes and lines alone: what an event says is read by the provider that asked for it. Field names other
than `data` mean nothing to a model's answer and are dropped, and so are comments.
"""

from agent_loop.errors import ProviderError

EVENT_LIMIT_BYTES = 16 * 1024 * 1024
STRAY_LIMIT_BYTES = 8 * 1024


class EventStream:
    """One stream, fed as it arrives.

    Attributes:
        stray: What came instead of events, if none has come yet, bounded: mostly an error page.
    """

    def __init__(self, provider: str) -> None:
        """Start a stream; `provider` is whose failure it is when it cannot be cut."""
        self._provider = provider
        self.stray = b""
        self._seen = False
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._data: list[bytes] = []
        self._skip_line_feed = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of every event that `piece` completes.

        Raises:
            ProviderError: One event is larger than EVENT_LIMIT_BYTES.
        """
        piece = self._with_line_feeds(piece)

        if b"\n" not in piece:
            # Joined only when the line ends: a long line in small pieces must not cost its square.
            self._hold(piece)
            return []

        if self._held:
            piece = b"".join([*self._held, piece])
            self._held.clear()
            self._held_bytes = 0

        *lines, rest = piece.split(b"\n")
        events = []

        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line:
                self._stray(line)
            elif self._data:
                events.append(self._take())

        self._hold(rest)
        return events

    def close(self) -> list[bytes]:
        """The event that the end of the stream completes, if any: some servers forget the last blank line."""
        return self.feed(b"\n\n")

    def _with_line_feeds(self, piece: bytes) -> bytes:
        """The same lines, ended by line feeds; a CR LF may be cut in two by the network."""
        if self._skip_line_feed and piece:
            piece = piece.removeprefix(b"\n")
            self._skip_line_feed = False

        if b"\r" in piece:
            self._skip_line_feed = piece.endswith(b"\r")
            piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

        return piece

    def _hold(self, rest: bytes) -> None:
        if rest:
            self._held.append(rest)
            self._held_bytes += len(rest)

        if self._held_bytes + sum(map(len, self._data)) > EVENT_LIMIT_BYTES:
            what = f"{self._provider} sent an event of more than {EVENT_LIMIT_BYTES} bytes"
            raise ProviderError("malformed", what, provider=self._provider)

    def _take(self) -> bytes:
        event = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
        self._data.clear()
        self._seen = True
        self.stray = b""
        return event

    def _stray(self, line: bytes) -> None:
        if not self._seen and not line.startswith((b":", b"event:")) and len(self.stray) < STRAY_LIMIT_BYTES:
            self.stray += line[:STRAY_LIMIT_BYTES] + b"\n"
