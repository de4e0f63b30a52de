"""Processes that are no agent: they make stored sessions, or do by other means what is measured.

Each has our packages on its path, does one thing, prints one JSON object and ends.
"""

import os
import subprocess
import sys
from typing import Any, Final

import orjson

from bench.agents import HERE, ROOT
from bench.client import Wrong

TIMEOUT_S: Final = 120.0


def run(script: str, *arguments: object) -> dict[str, Any]:
    """Run a script of this folder to its end; what it printed.

    Raises:
        Wrong: It failed, or did not end in time.
    """
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    env = {"LC_ALL": "C.UTF-8", "PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            command, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        raise Wrong(f"{script} did not end within {TIMEOUT_S:.0f} s") from None
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise Wrong(f"{script} ended with status {done.returncode}: {' '.join(words)[:200]}")
    told: dict[str, Any] = orjson.loads(done.stdout)
    return told
