"""The model server's process, for as long as a run lasts."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bench.agents import HERE


@contextmanager
def model_server() -> Iterator[str]:
    """Start the server; its base URL. It ends when this is left."""
    server = subprocess.Popen(
        [sys.executable, str(HERE / "model_server.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
    finally:
        server.stdin.close()
        try:
            server.wait(3)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        server.stdout.close()
