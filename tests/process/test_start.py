"""What a start costs and what it imports, counted and not timed."""

import json
import subprocess
import sys

from tests.process.server import ROOT, Server

MODULES_AT_MOST = 548
OURS_AT_MOST = 150
HEAVY = ("openai", "httpx", "httpx2", "httpcore", "acp", "anthropic", "mcp", "requests", "aiohttp", "yaml")

# Behind the first session's answer, or when the settings ask for it.
LATER = (
    "agent_loop.loop.turn",
    "agent_loop.tools.bundled",
    "agent_loop.plugins.invariants",
    "agent_loop.llm.catalogue",
    "agent_loop.plugins.permission.memory",
    "agent_loop.globs",
    "agent_loop.config.credentials",
    "agent_loop.config.vaults",
    "agent_loop.plugins.new_key",
    "keyring",
    "argparse",
    "pathspec",
)

# Runs the server up to the answer of initialize, then says on stderr which modules are there.
PROBE = """
import os, sys, threading
from acp_server.transport import outbox
write = outbox.os.write
def spy(fd, data):
    if b'"protocolVersion"' in bytes(data):
        names = " ".join(sys.modules)
        write(2, f"MODULES {names}\\n".encode())
    return write(fd, data)
outbox.os = type("os", (), {**vars(os), "write": staticmethod(spy)})
from acp_server.__main__ import main
main()
"""


def loaded_modules(server: Server) -> set[str]:
    """The modules there are when initialize is answered."""
    hello = json.dumps({"id": 1, "method": "initialize", "params": {"protocolVersion": 1}}) + "\n"
    done = subprocess.run(
        [sys.executable, "-c", PROBE, "--state-dir", str(server.state)],
        input=hello.encode(),
        capture_output=True,
        cwd=ROOT,
        env=server.unmeasured(),
        timeout=20,
        check=True,
    )
    [line] = [line for line in done.stderr.decode().splitlines() if line.startswith("MODULES ")]
    return set(line.split()[1:])


def test_the_handshake_loads_no_client_library_and_not_the_world(server: Server) -> None:
    """Our promise: an editor that starts us waits for the protocol, not for a model's SDK, nor for a turn."""
    modules = loaded_modules(server)

    ours = [name for name in modules if name.split(".")[0] in ("acp_server", "agent_loop")]
    assert "acp_server.serve" in modules
    assert [name for name in (*HEAVY, *LATER) if name in modules] == []
    assert (len(modules) <= MODULES_AT_MOST, len(ours) <= OURS_AT_MOST) == (True, True)


def test_a_first_start_says_nothing_but_the_protocol(server: Server) -> None:
    """opencode#13634, gptme#1268: a fresh state directory, migrations, banners."""
    server.state.rmdir()
    editor = server.launch()

    server.initialize()

    assert server.leave() == 0
    assert editor.problems == []
    assert editor.stderr == ""
    server.state.mkdir(exist_ok=True)


def test_the_version_is_told_at_the_terminal(server: Server) -> None:
    """A person's first question."""
    done = subprocess.run(
        [*server.argv(), "--version"],
        capture_output=True,
        cwd=server.home,
        env=server.env,
        timeout=20,
        check=True,
    )

    assert done.stdout.startswith(b"acp-server ")
    assert done.stderr == b""
