"""The guard: stdout belongs to the protocol alone, whoever prints."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

NOISY = """
import os, subprocess, sys
from acp_server.transport.guard import take_stdio
fd_in, fd_out = take_stdio()
print("printed")
sys.__stdout__.write("written\\n"); sys.__stdout__.flush()
os.write(1, b"raw\\n")
subprocess.run(["sh", "-c", "echo child; cat"])
data = os.read(fd_in, 100)
os.write(fd_out, data.upper())
sys.stderr.write(repr((os.get_inheritable(fd_in), os.get_inheritable(fd_out), sys.stdin.read())))
"""

STDLIB_ONLY = """
import sys
before = set(sys.modules)
import acp_server.transport.guard
new = set(sys.modules) - before
print(sorted(name for name in new if name.partition(".")[0] not in sys.stdlib_module_names))
"""


def run(code: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-c", code], input=b"for us", capture_output=True, timeout=20, cwd=ROOT, check=True
    )


def test_only_what_is_written_to_the_private_descriptor_reaches_stdout() -> None:
    """opencode#13634, gptme#1268: banners on stdout broke the protocol."""
    done = run(NOISY)

    assert done.stdout == b"FOR US"
    assert set(done.stderr.split()) >= {b"printed", b"written", b"raw", b"child"}


def test_the_private_descriptors_are_inherited_by_nobody_and_stdin_is_empty() -> None:
    """zed-industries/codex-acp#177: children must not read the protocol's stdin."""
    assert run(NOISY).stderr.endswith(b"(False, False, '')")


def test_the_guard_imports_nothing_that_could_print() -> None:
    """Contracts 13: stdlib only until the guard stands."""
    assert run(STDLIB_ONLY).stdout.strip() == (
        b"['acp_server', 'acp_server.transport', 'acp_server.transport.guard']"
    )
