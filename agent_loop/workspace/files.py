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


@record
class Survey:
    """What a name stands for, as far as deleting or moving it goes.

    Attributes:
        kind: As of an `Entry`.
        files, size_bytes: Of all that is below it, for a directory.
        signature: The same only while nothing of it changes; None when there is too much to tell.
    """

    kind: str
    files: int
    size_bytes: int
    signature: str | None


class FileAccess(Protocol):
    """Reads and writes whole files. Every method raises OSError as the disk would."""

    async def read(self, path: str, *, limit_bytes: int) -> bytes:
        """The file's bytes.

        Raises:
            FileTooLarge: It holds more than `limit_bytes`.
        """

    async def holds(self, path: str, content: bytes) -> bool:
        """Whether a file's bytes are these, for the price of looking at them."""

    async def write(self, path: str, *content: bytes | memoryview) -> str:
        """Replace or create the file, whole or not at all; parents are made, mode and links are kept.

        Args:
            content: In pieces, so that who changes little of a big file need not copy all of it.
        Returns:
            What became of it otherwise, in words for the model; empty when the file holds these bytes.
        """

    async def entries(self, path: str) -> list[Entry]:
        """What a directory holds, sorted by name."""

    async def survey(self, path: str) -> Survey:
        """What is there under this name, a link itself and a directory with all below it.

        Raises:
            FileNotFoundError: Nothing is.
        """

    async def delete(self, path: str) -> None:
        """Take a file, a link or a whole directory away; to everybody else it is gone at once."""

    async def move(self, source: str, target: str) -> None:
        """Give a file, a link or a directory another name; parents are made.

        Raises:
            FileExistsError: There is something under that name.
        """


class FileTooLarge(OSError):
    """A file is bigger than the caller wants to hold; the message says both sizes."""
