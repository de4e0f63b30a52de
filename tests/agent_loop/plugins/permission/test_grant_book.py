"""The file of remembered answers: private, whole, and shared by processes."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from agent_loop.plugins.permission.grant_book import FILE_NAME, GrantBook, GrantsUnreadable
from agent_loop.plugins.permission.grants import Covered, Grant

ROOT = Path(__file__).parents[4]
ADDS = """
import sys
from pathlib import Path
from agent_loop.plugins.permission.grant_book import GrantBook
from agent_loop.plugins.permission.grants import Covered, Grant
name, state = sys.argv[1:]
book = GrantBook(Path(state))
print("ready", flush=True)
sys.stdin.readline()
for number in range(25):
    book.add("/p", Grant(f"{name}{number}", True, Covered("execute", shell=f"{name} {number}"), 1))
"""


def grant(name: str, *, allows: bool = True, path: str = "/p/a") -> Grant:
    return Grant(name, allows, Covered("write", paths=(path,)), 7)


def test_an_answer_is_found_by_another_process_later(tmp_path: Path) -> None:
    """fountain PR999: the scope survives what it claims."""
    GrantBook(tmp_path / "state").add("/p", grant("a"))

    book = GrantBook(tmp_path / "state")

    assert book.all() == {"/p": (grant("a"),)}
    assert (book.of("/p"), book.of("/q")) == ((grant("a"),), ())


def test_without_a_file_nothing_is_remembered(tmp_path: Path) -> None:
    """Our promise: a first start makes no file."""
    assert GrantBook(tmp_path).all() == {}
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_the_persons_alone_and_says_its_format(tmp_path: Path) -> None:
    """Issue: 0600, one JSON file with a format version; no draft is left."""
    GrantBook(tmp_path / "state").add("/p", grant("a"))

    path = tmp_path / "state" / FILE_NAME
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert json.loads(path.read_text()) == {
        "format": 1,
        "projects": {
            "/p": [{"id": "a", "effect": "allow", "createdAt": 7, "kind": "write", "paths": ["/p/a"]}]
        },
    }
    assert sorted(each.name for each in path.parent.iterdir()) == [FILE_NAME, "permissions.lock"]


def test_the_newest_answer_to_a_question_is_the_answer(tmp_path: Path) -> None:
    """Our promise: nobody is both allowed and rejected."""
    book = GrantBook(tmp_path)
    for each in (grant("a"), grant("b", path="/p/b"), grant("c", allows=False)):
        book.add("/p", each)

    assert book.of("/p") == (grant("b", path="/p/b"), grant("c", allows=False))


def test_what_is_taken_back_is_forgotten(tmp_path: Path) -> None:
    """Issue: revocable; a running server knows of it at its next look."""
    running, book = GrantBook(tmp_path), GrantBook(tmp_path)
    book.add("/p", grant("a"))
    book.add("/q", grant("b"))
    assert running.of("/p") == (grant("a"),)

    book.remove(["a", "unknown"])

    assert running.all() == {"/q": (grant("b"),)}


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    """Issue: two processes safe."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", ADDS, name, str(tmp_path)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"

    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=30)
        assert writer.returncode == 0

    assert len(GrantBook(tmp_path).of("/p")) == 50


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"format": 2, "projects": {}}',
        '{"format": true, "projects": {}}',
        '{"format": 1, "projects": {"/p": {}}}',
        '{"format": 1, "projects": {"/p": [{"effect": "allow"}]}}',
    ],
)
def test_a_file_nobody_understands_is_left_alone(text: str, tmp_path: Path) -> None:
    """Our promise: it may hold what another version knows, or a person's half-made change."""
    (tmp_path / FILE_NAME).write_text(text)
    book = GrantBook(tmp_path)

    for act in (book.all, lambda: book.add("/p", grant("a")), lambda: book.remove(["a"])):
        with pytest.raises(GrantsUnreadable, match="no permissions this version can read"):
            act()

    assert (tmp_path / FILE_NAME).read_text() == text


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """Our promise: our words and the path, whatever the disk says."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / FILE_NAME).mkdir(parents=True)

    with pytest.raises(GrantsUnreadable, match=r"file/permissions.json cannot be used: Not a directory"):
        GrantBook(tmp_path / "file").all()
    with pytest.raises(GrantsUnreadable, match=r"file/permissions.json cannot be used: File exists"):
        GrantBook(tmp_path / "file").add("/p", grant("a"))
    with pytest.raises(GrantsUnreadable, match=r"folder/permissions.json cannot be used: Is a directory"):
        GrantBook(tmp_path / "folder").all()
