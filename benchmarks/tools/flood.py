"""A command that prints very much: time and memory of run_command, over a reader of the same pipe.

flood.py FOLDER BYTES
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import anyio
import orjson
from rig import call, context

from agent_loop.tools.bundled.run_command import RunCommand

LINE = "0123456789abcdef" * 4
BLOCK_BYTES = 64 * 1024


async def main(folder: Path, size: int) -> None:
    """The reader first and last: whatever drifts falls on both."""
    folder.mkdir(exist_ok=True)
    command = f"yes {LINE} | head -c {size}"
    ctx, tool = context(folder), RunCommand()
    await call(tool, ctx, command="echo warm")
    first = _read(command)
    before_mb = _status_mb("VmRSS")
    began = time.perf_counter()
    await call(tool, ctx, command=command)
    ours = time.perf_counter() - began
    grown_mb = _status_mb("VmHWM") - before_mb
    anchor = min(first, _read(command))
    told = {"s": ours, "ratio": ours / anchor, "grown_mb": grown_mb}
    print(orjson.dumps(told).decode())


def _read(command: str) -> float:
    began = time.perf_counter()
    with subprocess.Popen(["/bin/sh", "-c", command], stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdout is not None
        while os.read(child.stdout.fileno(), BLOCK_BYTES):
            pass
    return time.perf_counter() - began


def _status_mb(field: str) -> float:
    for line in Path("/proc/self/status").read_text("ascii", "replace").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise ValueError(field)


anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
