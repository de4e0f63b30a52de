"""LocalFiles against a real disk."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agent_loop.workspace.files import Entry, FileTooLarge
from agent_loop.workspace.local_files import LocalFiles

FILES = LocalFiles()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_file_is_read_whole_up_to_the_limit(tmp_path: Path) -> None:
    """The FileAccess seam."""
    path = tmp_path / "a"
    path.write_bytes(b"12345")

    assert await FILES.read(str(path), limit_bytes=5) == b"12345"

    with pytest.raises(FileTooLarge, match=r"has 5 bytes, more than 4$"):
        await FILES.read(str(path), limit_bytes=4)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux makes such files up")
async def test_a_file_that_hides_its_size_is_bounded_too() -> None:
    """Our promise: files the kernel makes up say 0 bytes and hold more."""
    with pytest.raises(FileTooLarge, match="more than 3 bytes"):
        await FILES.read("/proc/self/status", limit_bytes=3)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: os.mkfifo(path), "is no regular file but a FIFO"),
        (lambda path: path.symlink_to("/dev/null"), "is no regular file but a device"),
    ],
)
async def test_what_may_never_end_is_refused_in_words_at_once(
    tmp_path: Path, make: Callable[[Path], None], words: str
) -> None:
    """Our promise: opening a FIFO would wait for its writer for ever."""
    path = tmp_path / "odd"
    make(path)

    with anyio.fail_after(5), pytest.raises(OSError, match=words):
        await FILES.read(str(path), limit_bytes=100)

    with anyio.fail_after(5), pytest.raises(OSError, match=words):
        await FILES.write(str(path), b"x")


async def test_a_directory_is_neither_read_nor_written(tmp_path: Path) -> None:
    """The FileAccess seam: OSError as the disk would."""
    with pytest.raises(IsADirectoryError):
        await FILES.read(str(tmp_path), limit_bytes=100)

    with pytest.raises(IsADirectoryError):
        await FILES.write(str(tmp_path), b"x")

    with pytest.raises(FileNotFoundError):
        await FILES.read(str(tmp_path / "none"), limit_bytes=100)


async def test_writing_makes_parents_and_leaves_only_the_file(tmp_path: Path) -> None:
    """The FileAccess seam."""
    path = tmp_path / "deep" / "er" / "a.txt"

    await FILES.write(str(path), b"new")

    assert path.read_bytes() == b"new"
    assert [entry.name for entry in path.parent.iterdir()] == ["a.txt"]


async def test_a_new_file_obeys_the_umask_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    """The FileAccess seam: mode is kept."""
    old, new = tmp_path / "run.sh", tmp_path / "new"
    old.write_bytes(b"old")
    old.chmod(0o751)
    umask = os.umask(0o027)

    try:
        await FILES.write(str(old), b"replaced")
        await FILES.write(str(new), b"made")
    finally:
        os.umask(umask)

    assert (mode_of(old), old.read_bytes()) == (0o751, b"replaced")
    assert mode_of(new) == 0o640


async def test_a_link_stays_a_link_and_its_target_is_written(tmp_path: Path) -> None:
    """The FileAccess seam: links are kept."""
    target, link, dangling = tmp_path / "target", tmp_path / "link", tmp_path / "dangling"
    target.write_bytes(b"old")
    link.symlink_to("target")
    dangling.symlink_to("elsewhere")

    await FILES.write(str(link), b"new")
    await FILES.write(str(dangling), b"made")

    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert dangling.is_symlink()
    assert (tmp_path / "elsewhere").read_bytes() == b"made"


async def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The FileAccess seam: whole or not at all."""
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)

    with pytest.raises(OSError, match="No space left"):
        await FILES.write(str(path), b"new")

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


async def test_a_draft_that_cannot_be_made_is_told_as_the_disk_tells_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The FileAccess seam: OSError as the disk would, not one about the draft's removal."""

    def refused(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refused)

    with pytest.raises(PermissionError, match="Permission denied"):
        await FILES.write(str(tmp_path / "a"), b"new")


async def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our promise: a rename would get around the file's own permission."""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # the tests may run as root, who may write all

    with pytest.raises(PermissionError, match="read-only"):
        await FILES.write(str(path), b"new")

    assert path.read_bytes() == b"old"


async def test_a_cancelled_write_happens_whole_or_not_at_all(tmp_path: Path) -> None:
    """The FileAccess seam; a turn may be cancelled at any moment."""
    path = tmp_path / "a"
    path.write_bytes(b"old")

    with anyio.CancelScope() as scope:
        scope.cancel()
        await FILES.write(str(path), b"new")

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


async def test_a_directory_lists_what_each_name_itself_is(tmp_path: Path) -> None:
    """The FileAccess seam: links are not followed."""
    (tmp_path / "file").write_bytes(b"123")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    os.mkfifo(tmp_path / ".pipe")

    entries = await FILES.entries(str(tmp_path))

    assert [(entry.name, entry.kind) for entry in entries] == [
        (".pipe", "other"),
        ("file", "file"),
        ("folder", "directory"),
        ("link", "link"),
    ]
    assert entries[1].size_bytes == 3


async def test_a_name_that_vanishes_while_listing_does_not_spoil_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: builds delete files while we look."""

    class Vanished:
        name = "gone"

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            raise FileNotFoundError

    class Scan:
        def __enter__(self) -> "list[Vanished]":
            return [Vanished()]

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(os, "scandir", lambda _: Scan())

    assert await FILES.entries(str(tmp_path)) == [Entry("gone", "other", 0)]


@pytest.mark.parametrize("size", [0, 1, 256 * 1024, 256 * 1024 + 1, 600_000])
async def test_whether_a_file_holds_these_bytes_is_seen_to_the_last_one(size: int, tmp_path: Path) -> None:
    """Contracts 2: what was approved is what runs, whatever changed, and where."""
    content = os.urandom(size)
    path = tmp_path / "a"
    path.write_bytes(content)
    files = LocalFiles()

    assert await files.holds(str(path), content)
    assert not await files.holds(str(path), content + b"x")
    if size:
        assert not await files.holds(str(path), content[:-1])
        assert not await files.holds(str(path), content[:-1] + bytes([content[-1] ^ 1]))
        assert not await files.holds(str(path), bytes([content[0] ^ 1]) + content[1:])


async def test_what_is_no_file_holds_nothing(tmp_path: Path) -> None:
    """Our promise: as the disk says it."""
    with pytest.raises(FileNotFoundError):
        await LocalFiles().holds(str(tmp_path / "none"), b"")
    with pytest.raises(IsADirectoryError):
        await LocalFiles().holds(str(tmp_path), b"")
