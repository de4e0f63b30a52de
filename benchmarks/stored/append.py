"""Streams deltas through the loop into the JSONL store and into one in memory, taking turns.

    append.py ROOT DELTAS PAIRS

Prints, per store, medians over the pairs: seconds until all of a turn is logged, until it is stored, and of
CPU; and the bytes it adds to the log on disk.
"""

import asyncio
import gc
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import orjson
from rig import InMemory, Loop, open_loop, turn

from agent_loop.persistence.jsonl import JsonlStore

SWITCH_S = 50e-6
"""As the server has it: how long a worker thread waits for the interpreter."""


class Side:
    """One store's half of every pair."""

    def __init__(self, loop: Loop, root: Path) -> None:
        self._loop = loop
        self._root = root
        self.logged_s: list[float] = []
        self.stored_s: list[float] = []
        self.cpu_s: list[float] = []
        self.added = 0

    async def turn(self, session_id: str, deltas: int) -> None:
        handle = await self._loop.session(session_id, str(self._root))
        self._loop.be_ready(deltas)
        before = self._size(session_id)
        gc.collect()
        began, cpu = time.perf_counter(), time.process_time()
        await turn(handle.agent)
        self.cpu_s.append(time.process_time() - cpu)
        self.stored_s.append(time.perf_counter() - began)
        self.logged_s.append(self._loop.ended_at - began)
        self.added = self._size(session_id) - before
        await handle.dispose()

    def told(self) -> dict[str, Any]:
        return {
            "logged_s": statistics.median(self.logged_s),
            "stored_s": statistics.median(self.stored_s),
            "cpu_s": statistics.median(self.cpu_s),
            "added_bytes": self.added,
        }

    def _size(self, session_id: str) -> int:
        return sum(path.stat().st_size for path in self._root.rglob(f"{session_id}.jsonl"))


async def main(root: Path, deltas: int, pairs: int) -> None:
    """Do all pairs, the order within a pair turned round each time."""
    sys.setswitchinterval(SWITCH_S)
    disk = JsonlStore(root)
    async with open_loop(disk) as stored, open_loop(InMemory()) as kept:
        sides = {"disk": Side(stored, root), "memory": Side(kept, root)}
        for number in range(pairs):
            order = list(sides) if number % 2 == 0 else list(sides)[::-1]
            for name in order:
                await sides[name].turn(f"{name}-{number}", deltas)
        await disk.aclose()
    print(orjson.dumps({name: side.told() for name, side in sides.items()}).decode())


asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
