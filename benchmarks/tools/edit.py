"""One line of a big file changed by edit, over reading it and writing it back, and over the kernel's copy.

edit.py FOLDER BYTES TIMES
"""

import shutil
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import orjson
from rig import call, context

from agent_loop.tools.bundled.edit import READABLE_BYTES, EditFile
from agent_loop.tools.bundled.read import Read

LINE = b"0123456789abcdef" * 4 + b"\n"


async def main(folder: Path, size: int, times: int) -> None:
    """In turn, since a disk has moods."""
    folder.mkdir(exist_ok=True)
    path = folder / "big.txt"
    half = LINE * (size // len(LINE) // 2)
    path.write_bytes(half + b"the one line 0\n" + half)
    ctx, tool = context(folder), EditFile()
    if size <= READABLE_BYTES:
        await call(Read(), ctx, path="big.txt")
    ours, kernel, program = [], [], []
    for at in range(times):
        edits = [{"old": f"the one line {at}\n", "new": f"the one line {at + 1}\n"}]
        began = time.perf_counter()
        await call(tool, ctx, path="big.txt", edits=edits)
        ours.append(time.perf_counter() - began)
        copy = folder / f"copy-{at}"
        kernel.append(_timed(partial(shutil.copyfile, path, copy)))
        copy.unlink()
        program.append(_timed(partial(_written_back, path)))
    if f"the one line {times}\n".encode() not in path.read_bytes():
        raise RuntimeError("the edits were not made")
    took = statistics.median(ours)
    told = {
        "s": took,
        "kernel_ratio": took / statistics.median(kernel),
        "ratio": took / statistics.median(program),
    }
    print(orjson.dumps(told).decode())


def _timed(how: Callable[[], object]) -> float:
    began = time.perf_counter()
    how()
    return time.perf_counter() - began


def _written_back(path: Path) -> None:
    """What whoever changes a file whole cannot do without."""
    draft = path.with_suffix(".draft")
    draft.write_bytes(path.read_bytes())
    draft.replace(path)


anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
