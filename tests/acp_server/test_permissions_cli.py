"""`acp-server permissions`: what is remembered can be seen, and taken back."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from acp_server import cli
from agent_loop.plugins.permission.grant_book import FILE_NAME, GrantBook
from agent_loop.plugins.permission.grants import Covered, Grant


class Told(NamedTuple):
    status: int
    out: str
    err: str


Tell = Callable[..., Told]

MAKE = Grant("aaaa1111", True, Covered("execute", shell="make\x1b[2J test", cwd="/p"), 1_700_000_000_000)
KEY = Grant("bbbb2222", False, Covered("write", paths=("/q/key",)), 1_700_000_000_000)


@pytest.fixture
def tell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Runs `acp-server permissions …` on the state in tmp_path."""
    monkeypatch.setenv("TZ", "UTC")

    def run(*argv: str) -> Told:
        status = cli.run(cli.parse(["--state-dir", str(tmp_path), "permissions", *argv]))
        return Told(status, *capsys.readouterr())

    return run


@pytest.fixture
def book(tmp_path: Path) -> GrantBook:
    """Two answers, for two projects."""
    made = GrantBook(tmp_path)
    made.add("/p", MAKE)
    made.add("/q", KEY)
    return made


@pytest.mark.usefixtures("book")
def test_all_remembered_answers_are_one_table(tell: Tell) -> None:
    """Issue: listed; nothing in it that a terminal obeys."""
    assert tell("list") == (
        0,
        "ID        SINCE             ANSWER                         PROJECT\n"
        "aaaa1111  2023-11-14 22:13  allowed running make [2J test  /p\n"
        "bbbb2222  2023-11-14 22:13  rejected writing /q/key        /q\n",
        "",
    )


@pytest.mark.usefixtures("book")
def test_a_list_for_programs_says_all_there_is(tell: Tell, tmp_path: Path) -> None:
    """Issue: --json; of one project by its real path."""
    (tmp_path / "link").symlink_to("/q")

    told = tell("list", "--json", "--cwd", str(tmp_path / "link"))

    assert json.loads(told.out) == [
        {
            "id": "bbbb2222",
            "effect": "deny",
            "project": "/q",
            "createdAt": "2023-11-14T22:13:20Z",
            "kind": "write",
            "tool": None,
            "paths": ["/q/key"],
            "command": None,
            "domain": None,
        }
    ]
    assert len(json.loads(tell("list", "--json").out)) == 2


def test_where_nothing_is_remembered_that_is_said(tell: Tell) -> None:
    """Our promise: an empty table is no answer."""
    assert tell("list") == (0, "", "No answers are remembered.\n")
    assert tell("list", "--cwd", "/p") == (0, "", "No answers are remembered there.\n")
    assert tell("list", "--json") == (0, "[]\n", "")


def test_an_answer_is_taken_back_by_its_id(tell: Tell, book: GrantBook) -> None:
    """Issue: revocable."""
    assert tell("revoke", "bbbb2222", "bbbb2222") == (0, "revoked bbbb2222: rejected writing /q/key\n", "")

    assert book.all() == {"/p": (MAKE,)}


def test_an_unknown_id_revokes_nothing(tell: Tell, book: GrantBook) -> None:
    """Our promise: all or nothing, in words."""
    told = tell("revoke", "aaaa1111", "nope")

    assert told == (1, "", "There is no remembered answer nope; nothing was revoked.\n")
    assert book.of("/p") == (MAKE,)


def test_a_file_nobody_understands_is_named(tell: Tell, tmp_path: Path) -> None:
    """Our promise: our words and the path."""
    (tmp_path / FILE_NAME).write_text("{")

    assert tell("list").err == (
        f"{tmp_path}/{FILE_NAME} holds no permissions this version can read; mend it or take it away.\n"
    )
    assert tell("revoke", "aaaa1111").status == 1
