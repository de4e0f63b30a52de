"""A search over very many files, over bare ripgrep asked the same.

search.py FOLDER FILES TIMES
"""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import anyio
import orjson
from rig import call, context

from agent_loop.tools.bundled.ripgrep import ripgrep_path
from agent_loop.tools.bundled.search import Search

FILES_A_FOLDER = 100
WANTED = "the_one_name"


async def main(folder: Path, files: int, times: int) -> None:
    """The tree is made once; both look at it in turn, when the kernel has all of it in memory."""
    _grow(folder, files)
    ctx, tool = context(folder), Search()
    bare = [ripgrep_path() or "rg", "--no-config", "--line-number", f"--regexp={WANTED}", "."]
    ours, anchor = [], []
    for at in range(times + 1):
        began = time.perf_counter()
        outcome = await call(tool, ctx, pattern=WANTED)
        took = time.perf_counter() - began
        began = time.perf_counter()
        subprocess.run(bare, cwd=folder, stdout=subprocess.DEVNULL, check=True)
        if at:
            ours.append(took)
            anchor.append(time.perf_counter() - began)
    if WANTED not in str(outcome.content[0]):
        raise RuntimeError("it was not found")
    took = statistics.median(ours)
    print(orjson.dumps({"s": took, "ratio": took / statistics.median(anchor)}).decode())


def _grow(folder: Path, files: int) -> None:
    for at in range(0, files, FILES_A_FOLDER):
        below = folder / f"{at // 10_000}" / f"{at}"
        below.mkdir(parents=True)
        for number in range(at, min(at + FILES_A_FOLDER, files)):
            name = WANTED if number == files // 2 else f"name_{number}"
            (below / f"{number}.py").write_text(f"def {name}():\n    return {number}\n" * 4)


anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
