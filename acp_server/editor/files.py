"""The FileAccess seam behind an editor: its buffers, unsaved ones too; the disk for what those cannot hold.

Owns what of a file an editor can carry, and that bytes survive the way there and back: text in a buffer has
neither a byte order mark nor, often, the line ends of its file. Permission and roots were looked at before.

Source: https://agentclientprotocol.com/protocol/v1/file-system
"""

from contextlib import suppress
from typing import Any, Final

from acp_server.editor.ask import EditorRefused, ask_editor
from acp_server.rpc.calls import Calls
from agent_loop import Entry, FileAccess, FileTooLarge, Roots, Survey

ANSWER_S: Final = 30.0
CARRIED_BYTES: Final = 8_000_000
"""What is bigger is the disk's alone: few editors open it, and it is one line of the protocol."""

UNSAVED: Final = "The editor holds it in a buffer that is not saved."
CHANGED: Final = (
    "The editor changed it while saving (it may format what it saves): read it before you edit it again."
)
_BOM: Final = "\ufeff"


class EditorFiles:
    """Files as the editor sees them.

    Args:
        disk: What the editor's files lie on; everything but reading and writing text is asked of it.
        reads, writes: Whether the editor can.
    """

    def __init__(
        self, calls: Calls, session_id: str, roots: Roots, disk: FileAccess, *, reads: bool, writes: bool
    ) -> None:
        self._calls = calls
        self._session_id = session_id
        self._roots = roots
        self._disk = disk
        self._reads = reads
        self._writes = writes

    async def read(self, path: str, *, limit_bytes: int) -> bytes:
        """The buffer's bytes if it differs from the file, else the file's own.

        Raises:
            FileTooLarge: It holds more than `limit_bytes`.
            OSError: As the disk's, or the editor could not say.
        """
        on_disk = await self._on_disk(path, limit_bytes)
        saved = None if on_disk is None else _carried(on_disk)
        if not self._reads or (on_disk is not None and saved is None):
            return _found(path, on_disk)

        try:
            buffer = await self._buffer(path)
        except FileNotFoundError:
            # An editor may know less than the disk: a file outside its project, or one it ignores.
            return _found(path, on_disk)
        except EditorRefused:
            if on_disk is None:
                # Nobody has it. Not every editor has a code for that.
                return _found(path, on_disk)
            raise
        if saved is not None and on_disk is not None and _same_text(buffer, saved):
            return on_disk
        content = _as_file(buffer, saved or "")
        if len(content) > limit_bytes:
            raise FileTooLarge(f"{path} has {len(content):,} bytes, more than {limit_bytes:,}")
        return content

    async def holds(self, path: str, content: bytes) -> bool:
        """See `FileAccess.holds`; of the buffer where there is one."""
        if not self._reads or _carried(content) is None:
            return await self._disk.holds(path, content)
        try:
            return await self.read(path, limit_bytes=CARRIED_BYTES) == content
        except FileTooLarge:
            return False

    async def write(self, path: str, *content: bytes | memoryview) -> str:
        """Have the editor write it, and see to it that the disk then holds these bytes.

        Raises:
            OSError: As the disk's, or the editor did not write it.
        """
        whole = b"".join(content)
        text = _carried(whole) if self._writes else None
        if text is None:
            return await self._disk.write(path, *content)

        params = {**self._place(path), "content": text.removeprefix(_BOM)}
        await ask_editor(self._calls, "fs/write_text_file", params, ANSWER_S)
        return await self._settle(path, whole, text)

    async def entries(self, path: str) -> list[Entry]:
        """See `FileAccess.entries`."""
        return await self._disk.entries(path)

    async def survey(self, path: str) -> Survey:
        """See `FileAccess.survey`."""
        return await self._disk.survey(path)

    async def delete(self, path: str) -> None:
        """See `FileAccess.delete`."""
        await self._disk.delete(path)

    async def move(self, source: str, target: str) -> None:
        """See `FileAccess.move`."""
        await self._disk.move(source, target)

    async def _settle(self, path: str, content: bytes, text: str) -> str:
        """What the editor made of it, in words; its own idea of line ends and marks is put right."""
        try:
            written = await self._disk.read(path, limit_bytes=2 * len(content) + CARRIED_BYTES)
        except OSError:
            return UNSAVED
        if written == content:
            return ""
        saved = _carried(written)
        if saved is not None and _same_text(saved, text):
            return await self._disk.write(path, content)
        with suppress(OSError):
            if self._reads and _same_text(await self._buffer(path), text):
                return UNSAVED
        return CHANGED

    async def _on_disk(self, path: str, limit_bytes: int) -> bytes | None:
        try:
            return await self._disk.read(path, limit_bytes=limit_bytes)
        except FileNotFoundError:
            return None

    async def _buffer(self, path: str) -> str:
        answer = await ask_editor(self._calls, "fs/read_text_file", self._place(path), ANSWER_S)
        content = answer.get("content")
        return content if isinstance(content, str) else ""

    def _place(self, path: str) -> dict[str, Any]:
        return {"sessionId": self._session_id, "path": self._roots.spelled(path)}


def _found(path: str, content: bytes | None) -> bytes:
    if content is None:
        raise FileNotFoundError(2, "No such file or directory", path)
    return content


def _carried(content: bytes) -> str | None:
    """The text an editor could hold of it; None for what it would harm."""
    if len(content) > CARRIED_BYTES or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _same_text(one: str, other: str) -> bool:
    return one == other or _lines(one) == _lines(other)


def _lines(text: str) -> str:
    """The text without what an editor keeps beside it: mark, kind of line ends, end of the last line."""
    return text.removeprefix(_BOM).replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


def _as_file(buffer: str, saved: str) -> bytes:
    """A buffer as its file would hold it: with the mark, and the line ends if they were all of one kind."""
    ends = saved.count("\n")
    if ends and saved.count("\r\n") == ends and "\r" not in buffer:
        buffer = buffer.replace("\n", "\r\n")
    mark = _BOM if saved.startswith(_BOM) and not buffer.startswith(_BOM) else ""
    return (mark + buffer).encode("utf-8", "replace")
