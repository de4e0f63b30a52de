"""Holds the list of a folder to what it does with files that are no logs, or come and go meanwhile."""

import os
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from agent_loop.events.facts import LogRow
from agent_loop.events.facts_json import fact_to_json
from agent_loop.persistence.listing import HEAD_BYTES, LONG_HEAD_BYTES, cursor_of, list_sessions, place_of
from agent_loop.persistence.paths import bucket_name
from agent_loop.session.header import SessionHeader, header_to_json
from tests.agent_loop.persistence.store_contract import a_prompt
from tests.doubles.facts import TIME_MS, one_turn


def put(folder: Path, name: str, *, cwd: str | None = "/", rows: list[LogRow] | None = None) -> Path:
    """A log as the store would have written it."""
    path = folder / bucket_name(cwd) / f"{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = one_turn() if rows is None else rows
    lines = [header_to_json(SessionHeader(name, TIME_MS, cwd)), *map(fact_to_json, facts)]  # type: ignore[arg-type]
    path.write_bytes(b"".join(orjson.dumps(it) + b"\n" for it in lines))
    return path


def names(folder: Path, cwd: str | None = None) -> set[str]:
    return {it.header.id for it in list_sessions(folder, cwd, None, 100).sessions}


def test_foreign_files_are_passed_over(tmp_path: Path) -> None:
    """Spec loop 1.10: foreign files are skipped."""
    path = put(tmp_path, "ours")
    (tmp_path / ".DS_Store").write_text("whatever")
    (path.parent / "notes.txt").write_text("whatever")
    (path.parent / "not an id.jsonl").write_text("whatever")

    assert names(tmp_path) == names(tmp_path, "/") == {"ours"}


@pytest.mark.parametrize("data", [b"", b"\n", b"{broken\n{}\n", b"[]\n[]\n", b"{}\n{}\n"])
def test_what_is_no_log_is_not_listed(tmp_path: Path, data: bytes) -> None:
    """Our promise: one damaged log hides none of the others."""
    put(tmp_path, "a-damaged").write_bytes(data)
    put(tmp_path, "whole")

    assert names(tmp_path) == names(tmp_path, "/") == {"whole"}


def test_a_log_under_another_name_is_not_listed(tmp_path: Path) -> None:
    """Our promise: a log belongs to the id of its file."""
    path = put(tmp_path, "ours")
    path.with_name("copy.jsonl").write_bytes(path.read_bytes())

    assert names(tmp_path) == {"ours"}


@pytest.mark.parametrize("step", ["stat", "open"])
def test_a_log_deleted_meanwhile_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Our promise: deleting one session never fails a list of the others."""
    gone = put(tmp_path, "gone")
    put(tmp_path, "stays", cwd=None)
    if step == "stat":
        gone.unlink()
        gone.symlink_to(tmp_path / "nowhere")
    else:
        vanish_before_open(monkeypatch, gone)

    assert names(tmp_path) == {"stays"}


def vanish_before_open(monkeypatch: pytest.MonkeyPatch, gone: Path) -> None:
    whole: Callable[..., object] = Path.open

    def opening(path: Path, *args: object, **more: object) -> object:
        if path == gone:
            gone.unlink(missing_ok=True)
        return whole(path, *args, **more)

    monkeypatch.setattr(Path, "open", opening)


@pytest.mark.parametrize(("size_bytes", "title"), [(HEAD_BYTES, "Mend this:"), (LONG_HEAD_BYTES, "")])
def test_a_first_prompt_that_carries_a_file_is_read_for_its_title_up_to_a_limit(
    tmp_path: Path, size_bytes: int, title: str
) -> None:
    """Our promise: a list never reads whole logs; the title that follows the first answer is kept beside."""
    put(tmp_path, "long", rows=list(a_prompt("Mend this:\n" + "x" * size_bytes)))

    (only,) = list_sessions(tmp_path, None, None, 10).sessions

    assert (only.header.id, only.title) == ("long", title)


def test_a_folder_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """Spec loop 1.10: only what is missing counts as empty."""
    (tmp_path / "sessions").write_text("a file")

    with pytest.raises(OSError, match="Not a directory"):
        list_sessions(tmp_path / "sessions", None, None, 10)
    assert list_sessions(tmp_path / "nowhere", None, None, 10).sessions == ()


def test_a_cursor_leads_back_to_its_place() -> None:
    """ACP, session/list: the cursor is opaque to whoever gets it, and exact to whoever gave it."""
    assert place_of(cursor_of(TIME_MS, "some-id")) == (TIME_MS, "some-id")


def test_sessions_written_at_the_same_moment_have_an_order_too(tmp_path: Path) -> None:
    """Our promise: pages by time and id; a folder copied in one go loses nobody between two pages."""
    for name in ("a", "b", "c"):
        os.utime(put(tmp_path, name), (TIME_MS // 1_000, TIME_MS // 1_000))

    first = list_sessions(tmp_path, None, None, 2)
    rest = list_sessions(tmp_path, None, first.cursor, 2)

    assert [it.header.id for it in (*first.sessions, *rest.sessions)] == ["c", "b", "a"]
