"""One line of a big file changed by edit, over a copy of the file as a program makes it.

edit.py FOLDER BYTES TIMES
"""

import shutil
import statistics
import sys
import time
from pathlib import Path

import anyio
import orjson
from rig import call, context

from agent_loop.tools.bundled.edit import READABLE_BYTES, EditFile
from agent_loop.tools.bundled.read import Read

LINE = b"0123456789abcdef" * 4 + b"\n"
BLOCK_BYTES = 1024 * 1024


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
        kernel.append(_copied(path, folder / "copy", shutil.copyfile))
        program.append(_copied(path, folder / "copy", _copy))
    if f"the one line {times}\n".encode() not in path.read_bytes():
        raise RuntimeError("the edits were not made")
    took = statistics.median(ours)
    told = {
        "s": took,
        "kernel_ratio": took / statistics.median(kernel),
        "ratio": took / statistics.median(program),
    }
    print(orjson.dumps(told).decode())


def _copied(path: Path, copy: Path, how: object) -> float:
    copy.unlink(missing_ok=True)
    began = time.perf_counter()
    assert callable(how)
    how(path, copy)
    return time.perf_counter() - began


def _copy(path: Path, copy: Path) -> None:
    with path.open("rb") as source, copy.open("wb") as target:
        while block := source.read(BLOCK_BYTES):
            target.write(block)


anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
