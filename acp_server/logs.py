"""The server's log: a file in the state directory, written by a thread, never by the event loop.

Stderr stays silent: some editors show every line of it to the person. When the thread cannot keep up,
records are dropped and counted.
"""

import logging
import logging.handlers
import queue
from contextlib import suppress
from pathlib import Path
from typing import Final

QUEUE_RECORDS: Final = 10_000
LOG_FILE: Final = "acp-server.log"
LIMIT_BYTES: Final = 5_000_000


class _DroppingHandler(logging.handlers.QueueHandler):
    def __init__(self, records: "queue.Queue[logging.LogRecord]") -> None:
        super().__init__(records)
        self._records = records
        self.dropped = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        if self.dropped and not self._records.full():
            record.msg = f"{record.msg} [{self.dropped} records before this one were dropped]"
            self.dropped = 0
        try:
            self._records.put_nowait(record)
        except queue.Full:
            self.dropped += 1


def start_log(state_dir: Path, level: str) -> logging.handlers.QueueListener | None:
    """Begin to log to `<state_dir>/log`; None when it cannot be written, which is no reason to fail."""
    try:
        folder = state_dir / "log"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = logging.handlers.RotatingFileHandler(
            folder / LOG_FILE, maxBytes=LIMIT_BYTES, backupCount=1, encoding="utf-8", delay=True
        )
    except OSError:
        logging.getLogger().addHandler(logging.NullHandler())
        return None
    file.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    records: queue.Queue[logging.LogRecord] = queue.Queue(QUEUE_RECORDS)
    listener = logging.handlers.QueueListener(records, file)
    root = logging.getLogger()
    root.addHandler(_DroppingHandler(records))
    root.setLevel(level.upper())
    listener.start()
    return listener


def stop_log(listener: logging.handlers.QueueListener | None) -> None:
    """Write what is queued and close the file."""
    if listener is not None:
        with suppress(Exception):
            listener.stop()
            for handler in listener.handlers:
                handler.close()
