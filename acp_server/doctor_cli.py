"""`acp-server doctor`: everything that has to be right before the first session, one line each.

Exit statuses: 0 all is well, warnings included; 1 something has to be mended first.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import Final

import anyio

from acp_server.demo_screen import GREEN, RED, YELLOW, wants_colour
from acp_server.doctor_checks import Check, checks
from acp_server.inert import one_line
from agent_loop import Loaded

_STYLE: Final = {"ok": GREEN, "warn": YELLOW, "FAIL": RED}


def doctor(arguments: argparse.Namespace, loaded: Loaded, environ: Mapping[str, str]) -> int:
    """Check, and say what was found; the exit status."""
    try:
        found = anyio.run(partial(_examine, arguments, loaded, environ))
    except KeyboardInterrupt:
        return 130
    command, flags = _command(), _flags(arguments)
    if arguments.json:
        told = {"checks": [asdict(check) for check in found], "zed": _zed(command, flags), "command": command}
        print(json.dumps(told, indent=2))
    else:
        print(f"\nZed, in settings.json:\n\n{json.dumps(_zed(command, flags), indent=2)}")
        print(f"\nAny other ACP client, over stdin and stdout:\n\n  {' '.join([command, *flags])}")
    return 1 if any(check.state == "FAIL" for check in found) else 0


async def _examine(arguments: argparse.Namespace, loaded: Loaded, environ: Mapping[str, str]) -> list[Check]:
    found = []
    coloured = wants_colour(sys.stdout, environ)
    async for check in checks(loaded, environ, offline=arguments.offline):
        found.append(check)
        if not arguments.json:
            state = f"{check.state:4}"
            shown = f"\x1b[{_STYLE[check.state]}m{state}\x1b[0m" if coloured else state
            print(f"{shown}  {check.name:9}  {one_line(check.words)}", flush=True)
    return found


def _zed(command: str, flags: list[str]) -> dict[str, object]:
    return {"agent_servers": {"ACP Agent Server": {"command": command, "args": flags, "env": {}}}}


def _flags(arguments: argparse.Namespace) -> list[str]:
    """What the person chose for this check, for the editor to say, too; it runs in another directory."""
    files = {"--state-dir": arguments.state_dir, "--config": arguments.config}
    places = {flag: os.path.abspath(path) for flag, path in files.items() if path}
    model = {"--model": arguments.model} if arguments.model else {}
    return [part for pair in {**model, **places}.items() for part in pair]


def _command() -> str:
    """Our own script, in full: an editor's PATH is seldom that of a shell."""
    beside = os.path.join(os.path.dirname(sys.executable), "acp-server")
    return beside if os.access(beside, os.X_OK) else shutil.which("acp-server") or "acp-server"
