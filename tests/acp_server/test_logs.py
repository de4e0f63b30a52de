"""The log: a file, written by a thread, dropped and counted when too much; never stderr."""

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_server import logs
from acp_server.logs import LOG_FILE, FileLog, start_log, stop_log

WAIT_S = 5.0


@pytest.fixture(autouse=True)
def _root_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, loud = list(root.handlers), root.level, logging.raiseExceptions
    yield
    root.handlers[:], root.level, logging.raiseExceptions = handlers, level, loud


def written(folder: Path) -> str:
    return (folder / "log" / LOG_FILE).read_text("utf-8")


def test_what_is_logged_stands_in_the_file_when_it_is_stopped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Contracts 13: silent on stderr, full log in `<state>/log`."""
    handler = start_log(tmp_path, "info")

    logging.getLogger("acp_server.test").info("hello %s", "world")
    logging.getLogger("acp_server.test").debug("not this")
    stop_log(handler)

    assert "INFO acp_server.test: hello world" in written(tmp_path)
    assert "not this" not in written(tmp_path)
    assert capfd.readouterr() == ("", "")
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def test_a_place_that_cannot_be_written_is_no_reason_to_fail(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Our promise: a read-only state directory must not break the handshake."""
    (tmp_path / "log").write_text("a file where the folder should be")

    handler = start_log(tmp_path, "info")
    logging.getLogger("acp_server.test").error("unheard")
    stop_log(handler)

    assert capfd.readouterr() == ("", "")


def test_a_start_without_news_makes_no_file_and_no_thread(tmp_path: Path) -> None:
    """Our promise: who says nothing pays nothing."""
    before = threading.active_count()

    handler = start_log(tmp_path, "info")

    assert threading.active_count() == before
    stop_log(handler)
    assert list(tmp_path.iterdir()) == []


def test_records_nobody_takes_in_time_are_dropped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contracts 13: a bounded queue, dropped and counted when full."""
    gate, write = threading.Event(), FileLog._write

    def gated(log: FileLog) -> None:
        gate.wait(WAIT_S)
        write(log)

    monkeypatch.setattr(FileLog, "_write", gated)
    handler = FileLog(tmp_path, queue_records=2)
    for number in range(5):
        handler.emit(_record(f"record {number}"))
    gate.set()
    deadline = time.monotonic() + WAIT_S
    while not handler._records.empty() and time.monotonic() < deadline:
        gate.wait(0.001)
    handler.emit(_record("after"))
    stop_log(handler)

    lines = written(tmp_path).splitlines()
    assert [line.partition(": ")[2] for line in lines] == [
        "record 0",
        "record 1",
        "after [3 records before this one were dropped]",
    ]


def test_a_thread_that_is_stuck_is_not_waited_for_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contracts 13: every wait at the end has one of its own."""
    gate = threading.Event()
    monkeypatch.setattr(logs, "STOP_GRACE_S", 0.01)
    monkeypatch.setattr(FileLog, "_write", lambda _: gate.wait(WAIT_S))
    handler = FileLog(tmp_path, queue_records=1)
    handler.emit(_record("record"))

    stop_log(handler)

    assert not gate.is_set()
    gate.set()


def _record(words: str) -> logging.LogRecord:
    return logging.LogRecord("test", logging.WARNING, __file__, 1, words, (), None)
