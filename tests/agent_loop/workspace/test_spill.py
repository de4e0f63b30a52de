"""Spill: the private file that holds what the bound leaves out."""

import logging
import os
import stat
from pathlib import Path

import pytest

from agent_loop.workspace.spill import Spill


def modes(path: Path) -> tuple[int, int]:
    return stat.S_IMODE(path.parent.stat().st_mode), stat.S_IMODE(path.stat().st_mode)


async def test_only_its_owner_may_read_the_file_even_where_the_umask_gives_all(tmp_path: Path) -> None:
    """Loop spec 1.11: a private 0700 folder, a 0600 exclusive file."""
    umask = os.umask(0)

    try:
        spill = Spill(str(tmp_path / "deep" / "spill"))
        await spill.add(b"secret")
        await spill.flush()
    finally:
        os.umask(umask)

    assert spill.path is not None
    assert modes(Path(spill.path)) == (0o700, 0o600)
    assert Path(spill.path).read_bytes() == b"secret"


async def test_a_folder_that_stands_open_is_closed(tmp_path: Path) -> None:
    """Loop spec 1.11."""
    tmp_path.chmod(0o755)
    spill = Spill(str(tmp_path))

    await spill.add(b"x" * 2**20)

    assert spill.path is not None
    assert modes(Path(spill.path)) == (0o700, 0o600)


async def test_the_file_ends_at_its_limit_and_says_so(tmp_path: Path) -> None:
    """Our promise: a command that prints for ever does not fill the disk."""
    spill = Spill(str(tmp_path), limit_bytes=5)

    for part in (b"123", b"456", b"789"):
        await spill.add(part)
        await spill.flush()

    assert spill.path is not None
    assert Path(spill.path).read_bytes() == b"12345\n[the rest was not kept]\n"


async def test_a_disk_that_fails_costs_the_file_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Our promise: the command's result does not depend on the room left on a disk."""
    (tmp_path / "file").write_bytes(b"")
    spill = Spill(str(tmp_path / "file" / "spill"))

    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            await spill.add(b"x")
            await spill.flush()
        await spill.discard()

    assert (spill.started, spill.path) == (True, None)
    assert len(caplog.records) == 1


async def test_a_disk_that_fails_later_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: `spill_path` names all of the output or nothing."""
    spill = Spill(str(tmp_path))
    await spill.add(b"x")
    await spill.flush()

    def refused(*_: object, **__: object) -> int:
        raise OSError("disk is gone")

    monkeypatch.setattr(os, "open", refused)
    await spill.add(b"y")
    await spill.flush()

    assert (spill.path, os.listdir(tmp_path)) == (None, [])


async def test_nothing_is_made_until_something_comes(tmp_path: Path) -> None:
    """The LocalCommands seam: the folder is made when it is needed."""
    spill = Spill(str(tmp_path / "spill"))

    await spill.flush()
    await spill.discard()

    assert os.listdir(tmp_path) == []
