"""Brings deltas that wait in memory to the disk at once: by the recorder, and as one row each.

    persist.py ROOT DELTAS PAIRS

Prints the median over the pairs of seconds for both, and bytes: of the rows, and of the log when each ten
deltas are written behind the stream, as they are of a slow model.
"""

import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
from rig import delta_text

from agent_loop.chunks import TextDelta
from agent_loop.events.bus import Bus
from agent_loop.events.facts import AssistantChunk, StepStart
from agent_loop.persistence.jsonl import JsonlStore
from agent_loop.persistence.recorder import Recorder
from agent_loop.session.header import SessionHeader
from agent_loop.session.sessions import Session

DELTAS_A_WRITE = 10

sync_data = getattr(os, "fdatasync", os.fsync)


async def packed_s(store: JsonlStore, session_id: str, root: Path, deltas: int) -> float:
    """Seconds of the flush at a turn's end, had nothing been written before."""
    async with _opened(store, session_id, root) as (session, recorder):
        for at in range(deltas):
            _add(session, at)
        began = time.perf_counter()
        await recorder.flush(durable=True)
        return time.perf_counter() - began


async def slow_bytes(store: JsonlStore, root: Path, deltas: int) -> int:
    """What deltas of a slow model are on disk."""
    async with _opened(store, "slow", root) as (session, recorder):
        before = _size(root, "slow")
        for at in range(deltas):
            _add(session, at)
            if at % DELTAS_A_WRITE == DELTAS_A_WRITE - 1:
                await recorder.flush(durable=False)
        await recorder.flush(durable=True)
        return _size(root, "slow") - before


@asynccontextmanager
async def _opened(store: JsonlStore, session_id: str, root: Path) -> AsyncIterator[tuple[Session, Recorder]]:
    """A session whose folders the disk knows already."""
    header = SessionHeader(session_id, 0, str(root))
    await store.create(header)
    session = Session(header)
    recorder = Recorder(store, session, Bus(), stored=0)
    session.log.append(StepStart(1, 1))
    await recorder.flush(durable=True)
    yield session, recorder
    await recorder.close()
    await store.release(session_id)


def _size(root: Path, session_id: str) -> int:
    return sum(path.stat().st_size for path in root.rglob(f"{session_id}.jsonl"))


def _add(session: Session, at: int) -> None:
    session.log.append(AssistantChunk(1, 1, 1, TextDelta(0, delta_text(at))))


def rows_s(path: Path, deltas: int) -> float:
    """Seconds of the plain way: one row per delta, one write, one fsync."""
    texts = [delta_text(at) for at in range(deltas)]
    now_ms = time.time_ns() // 1_000_000
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.fsync(fd)

    began = time.perf_counter()
    rows = [
        orjson.dumps(_row(at, now_ms, text), option=orjson.OPT_APPEND_NEWLINE)
        for at, text in enumerate(texts)
    ]
    os.write(fd, b"".join(rows))
    sync_data(fd)
    taken = time.perf_counter() - began

    os.close(fd)
    return taken


def _row(seq: int, time_ms: int, text: str) -> dict[str, object]:
    chunk = {"type": "text-delta", "index": 0, "text": text}
    data = {"turn": 1, "step": 1, "attempt": 1, "chunk": chunk}
    return {"seq": seq, "time": time_ms, "type": "assistant/chunk", "data": data}


async def main(root: Path, deltas: int, pairs: int) -> None:
    """Do all pairs."""
    store = JsonlStore(root)
    packed, rows = [], []
    for number in range(pairs + 1):
        packed.append(await packed_s(store, f"packed-{number}", root, deltas))
        rows.append(rows_s(root / f"rows-{number}", deltas))
    slow = await slow_bytes(store, root, deltas)
    await store.aclose()
    told = {
        # The first pair warms up.
        "packed_s": statistics.median(packed[1:]),
        "rows_s": statistics.median(rows[1:]),
        "rows_bytes": (root / "rows-0").stat().st_size,
        "slow_bytes": slow,
    }
    print(orjson.dumps(told).decode())


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
