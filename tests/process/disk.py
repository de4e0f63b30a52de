"""Disks that fail under a running server, and recover.

Owns the ways a disk fails: no file may grow, the folder is gone, the log cannot be opened, no space is
left. What the server makes of it is for `test_disk` and `test_full_disk` to say.
"""

import resource
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.doubles.memory_model import Item
from tests.goldens.places import as_toml
from tests.process.crash import sound_facts
from tests.process.server import DONE, Server

# A user namespace of its own, so that mounting needs no rights and nobody else sees it.
UNSHARE = ("unshare", "--map-root-user", "--mount", "sh", "-c")
MOUNT = 'mount -t tmpfs -o size=256k none "$0" && exec "$@"'


@contextmanager
def no_growth(server: Server, session: str, more_bytes: int = 0) -> Iterator[None]:
    """The kernel lets no file of the server grow beyond the session's log and so many bytes."""
    assert server.editor.child is not None
    pid = server.editor.child.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    limit = server.log(session).stat().st_size + more_bytes
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # it may have ended meanwhile
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def folder_gone(server: Server, session: str) -> Iterator[None]:
    """The folder of the session's log is away, as a disk that was pulled out or a share that went down."""
    folder = server.log(session).parent
    away = server.folder / "away"
    folder.rename(away)
    try:
        yield
    finally:
        away.rename(folder)


@contextmanager
def log_out_of_reach(server: Server, session: str) -> Iterator[None]:
    """What stands at the log's place cannot be opened for writing, as after an error of the disk."""
    path = server.log(session)
    away = server.folder / path.name
    path.rename(away)
    path.mkdir()
    try:
        yield
    finally:
        path.rmdir()
        away.rename(path)


class SmallDisk(Server):
    """A server whose state directory is a file system of 256 KiB that it alone sees and that ends with it."""

    @staticmethod
    def is_possible(folder: Path) -> bool:
        """Whether this machine lets an ordinary process mount in a namespace of its own."""
        probe = [*UNSHARE, MOUNT, str(folder), "true"]
        return shutil.which("unshare") is not None and subprocess.run(probe, check=False).returncode == 0

    def argv(self, *flags: str) -> list[str]:
        config = ("--config", str(self._config))
        return [*UNSHARE, MOUNT, str(self.state), *super().argv(*config, *flags)]

    def settings(self, settings: Mapping[str, Any]) -> None:
        """Beside the state directory, which is mounted over."""
        self._config.write_text(as_toml(settings), "utf-8")

    @contextmanager
    def full(self) -> Iterator[None]:
        """No block of the disk is free."""
        filler = self._disk / "filler"
        size_bytes = 64 * 1024
        with filler.open("wb", buffering=0) as file:
            while size_bytes:
                try:
                    file.write(b"x" * size_bytes)
                except OSError:
                    size_bytes //= 2
        try:
            yield
        finally:
            filler.unlink()

    def rescue(self) -> None:
        """Copy what is on the disk to where the tests look, because it ends with the process."""
        shutil.copytree(self._disk, self.state, dirs_exist_ok=True)

    @property
    def _config(self) -> Path:
        return self.folder / "config.toml"

    @property
    def _disk(self) -> Path:
        assert self.editor.child is not None
        return Path(f"/proc/{self.editor.child.pid}/root{self.state}")


def with_a_turn(server: Server, *answers: Sequence[Item]) -> str:
    """A session that has one turn on disk."""
    server.start(DONE, *answers, directed=True)
    server.initialize()
    session = server.new_session()
    assert news(server.run(session)) == []
    return session


def news(answer: dict[str, Any]) -> list[str]:
    """What an answer tells the person besides its result."""
    meta = answer["result"].get("_meta", {"agent_loop": {"warnings": []}})
    return list(meta["agent_loop"]["warnings"])


def kinds(server: Server, session: str) -> list[str]:
    """Why each turn on disk ended; the log must be sound."""
    sound_facts(server, session)
    return [end["kind"] for end in server.ends(session)]
