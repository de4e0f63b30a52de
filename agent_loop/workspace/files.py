"""The FileAccess seam: bytes of the person's files, wherever they are kept.

Paths are absolute. Staying inside the session's roots belongs to `roots`; a caller resolves there first.
"""

from typing import Protocol

from agent_loop.record import record


@record
class Entry:
    """One name in a directory; `kind` is what the name itself is, links not followed."""

    name: str
    kind: str
    size_bytes: int


class FileAccess(Protocol):
    """Reads and writes whole files. Every method raises OSError as the disk would."""

    async def read(self, path: str, *, limit_bytes: int) -> bytes:
        """The file's bytes.

        Raises:
            FileTooLarge: It holds more than `limit_bytes`.
        """

    async def write(self, path: str, content: bytes) -> None:
        """Replace or create the file, whole or not at all; parents are made, mode and links are kept."""

    async def entries(self, path: str) -> list[Entry]:
        """What a directory holds, sorted by name."""


class FileTooLarge(OSError):
    """A file is bigger than the caller wants to hold; the message says both sizes."""
