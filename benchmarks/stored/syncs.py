"""Counts the fsyncs of one turn of many deltas that ends on disk, whoever makes them.

syncs.py ROOT DELTAS
"""

import asyncio
import os
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import orjson
from rig import open_loop, turn

from agent_loop.persistence.jsonl import JsonlStore

SYNCS = {os.fsync, getattr(os, "fdatasync", os.fsync)}


class Counter:
    """A profiler that looks at nothing but calls of these two functions."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call" and argument in SYNCS:
            self.seen += 1


async def main(root: Path, deltas: int) -> None:
    """Count from a warm session on."""
    counter = Counter()
    # Before there is a worker thread: each takes the profiler with it when it starts.
    threading.setprofile(counter)
    sys.setprofile(counter)
    store = JsonlStore(root)
    async with open_loop(store) as loop:
        handle = await loop.session("counted", str(root))
        loop.be_ready(deltas)
        before = counter.seen
        await turn(handle.agent)
        counted = counter.seen - before
        await handle.dispose()
        await store.aclose()
    sys.setprofile(None)
    print(orjson.dumps({"syncs": counted}).decode())


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
