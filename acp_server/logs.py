"""The server's log: a file in the state directory, written by a thread, never by the event loop.

Stderr stays silent: some editors show every line of it to the person. Thread, folder and file come with
the first record, so a start without news pays for none of them. When the thread cannot keep up, records
are dropped and counted.
"""

import logging
import queue
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

QUEUE_RECORDS: Final = 10_000
LOG_FILE: Final = "acp-server.log"
LIMIT_BYTES: Final = 5_000_000
STOP_GRACE_S: Final = 1.0
LINE_FORMAT: Final = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"


class FileLog(logging.Handler):
    """Queues records for a thread that writes them to `<state_dir>/log`, or nowhere when it cannot."""

    def __init__(self, state_dir: Path, *, queue_records: int = QUEUE_RECORDS) -> None:
        super().__init__()
        self._folder = state_dir / "log"
        self._records: queue.Queue[logging.LogRecord | None] = queue.Queue(queue_records)
        self._thread: threading.Thread | None = None
        self._dropped = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Queue one record; never blocks, never raises."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="log", daemon=True)
            self._thread.start()
        try:
            if self._dropped:
                record.msg = f"{record.msg} [{self._dropped} records before this one were dropped]"
            self._records.put_nowait(record)
            self._dropped = 0
        except queue.Full:
            self._dropped += 1

    def close(self) -> None:
        """Write what is queued, within STOP_GRACE_S, and close the file."""
        if self._thread is not None and self._thread.is_alive():
            try:
                self._records.put(None, timeout=STOP_GRACE_S)
            except queue.Full:
                return
            self._thread.join(STOP_GRACE_S)
        super().close()

    def _write(self) -> None:
        # Costs 5 ms of a start (pickle, sockets) that a start without news need not pay.
        from logging.handlers import RotatingFileHandler

        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = RotatingFileHandler(
                self._folder / LOG_FILE, maxBytes=LIMIT_BYTES, backupCount=1, encoding="utf-8"
            )
        except OSError:
            return
        file.setFormatter(logging.Formatter(LINE_FORMAT))
        while (record := self._records.get()) is not None:
            file.handle(record)
        # The last lines of a full disk are lost; an exception in a thread would say so on stderr.
        with suppress(OSError):
            file.close()


def start_log(state_dir: Path, level: str) -> FileLog:
    """Send everything from `level` on to the log file."""
    logging.raiseExceptions = False  # what cannot be logged must not go to stderr either
    handler = FileLog(state_dir)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(level.upper())
    return handler


def stop_log(handler: FileLog) -> None:
    """Stop logging; what is queued is written first."""
    logging.getLogger().removeHandler(handler)
    handler.close()
