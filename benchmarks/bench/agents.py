"""The agents that are compared: how each is started, and what it will be asked to say.

Every prompt reads `bench deltas=N pause_ms=M`, and every agent answers it with the same N pieces of text.
Ours gets them from a script or from the model server; the anchors make them themselves.
"""

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parents[1]
ROOT: Final = HERE.parent

SDK: Final = "sdk"
FLOOR: Final = "floor"
SCRIPTED: Final = "scripted"
OPENAI: Final = "openai"
ANTHROPIC: Final = "anthropic"
BLAST: Final = "blast"
OURS: Final = (SCRIPTED, OPENAI, ANTHROPIC)
_ANCHORS: Final = {SDK: "sdk_agent.py", FLOOR: "floor_agent.py", BLAST: "blast_agent.py"}

Script = Sequence[Sequence[int]]
"""How many deltas each prompt asks for: one list per session, in the order the sessions first prompt."""


@dataclass(frozen=True)
class Launch:
    """One agent, ready to be started."""

    command: list[str]
    env: dict[str, str]
    cwd: Path
    errors: Path


def delta_text(at: int) -> str:
    """The text of delta number `at`, counted from 0: eight characters until there are ten million."""
    return f"{at:07d} "


def prepare(agent: str, home: Path, script: Script, model_url: str) -> Launch:
    """Lay out what one run of the agent needs, in a directory that may exist; a log in it stays.

    Args:
        script: Read by the scripted provider alone; it must cover all that will be asked.
        model_url: Of the model server; unused by the others.
    """
    workspace, state = home / "project", home / "state"
    workspace.mkdir(parents=True, exist_ok=True)
    # A short environment of its own, and no proxy in it: the same for all.
    env = {
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(ROOT),
    }

    if agent in _ANCHORS:
        command = [sys.executable, str(HERE / "anchors" / _ANCHORS[agent])]
        return Launch(command, env, workspace, home / "stderr")

    state.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "acp_server", "--state-dir", str(state)]
    if agent in (OPENAI, ANTHROPIC):
        command += ["--model", f"{agent}/bench"]
        env |= {f"{agent.upper()}_BASE_URL": model_url, f"{agent.upper()}_API_KEY": "bench"}
    else:
        path = home / "script.jsonl"
        _write_script(path, script)
        settings = f"""
format = 1
agent.model = "scripted/bench"

[providers.scripted]
kind = "scripted"
script = {json.dumps(str(path))}
"""
        (state / "config.toml").write_text(settings, "utf-8")
    return Launch(command, env, workspace, home / "stderr")


def _write_script(path: Path, script: Script) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number, prompts in enumerate(script, 1):
            for deltas in prompts:
                do: list[dict[str, str]] = [{"text": delta_text(at)} for at in range(deltas)]
                line = {"session": number, "do": [*do, {"finish": "stop"}]}
                file.write(json.dumps(line) + "\n")
