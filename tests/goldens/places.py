"""Where one golden runs: its directories, settings and environment, laid out before and collected after.

Owns the files around a run. The server sees a workspace, a state directory and a home that are its own, a
short environment, and a `config.toml` that names the scripted model.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.goldens.golden import Golden, Json

__all__ = ["Places", "as_toml", "files_below", "overlaid"]

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Places:
    """The directories of one run, all below one that is its own."""

    root: Path

    @property
    def cwd(self) -> Path:
        """The session's directory, `$cwd` in goldens."""
        return self.root / "project"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def home(self) -> Path:
        """Home and working directory of the server process: neither may matter."""
        return self.root / "home"

    def lay_out(self, golden: Golden, script: Sequence[Json], control: str) -> None:
        """Make the directories, copy the given workspace, write the script and the settings."""
        self.home.mkdir(parents=True)
        self.state.mkdir()
        if golden.workspace.is_dir():
            shutil.copytree(golden.workspace, self.cwd, symlinks=True)
        else:
            self.cwd.mkdir()

        path = self.root / "model.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in script), "utf-8")
        scripted = {"kind": "scripted", "script": str(path), "control": control}
        ours = {"format": 1, "agent": {"model": "scripted/script"}, "providers": {"scripted": scripted}}
        config = self.state / "config.toml"
        config.write_text(as_toml(overlaid(ours, golden.settings)), "utf-8")
        config.chmod(0o600)  # a warning of a key that others can read must not hang on who runs this

    def environment(self) -> dict[str, str]:
        """What the server process inherits: enough to run, and to be measured when coverage asks."""
        kept = {k: v for k, v in os.environ.items() if k.startswith(("COVERAGE_", "COV_CORE_"))}
        own = {"HOME": str(self.home), "LC_ALL": "C", "TZ": "UTC", "PYTHONPATH": str(_ROOT)}
        own["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
        return {**kept, **own, "PATH": os.environ.get("PATH", os.defpath)}


def files_below(root: Path) -> dict[str, str]:
    """Relative path → text of every file; a symbolic link is `-> TARGET`."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = path.read_bytes().decode("utf-8", "surrogateescape")
    return found


def overlaid(ours: Mapping[str, Any], golden: Mapping[str, Any]) -> Json:
    """Settings with a golden's laid over them, table by table."""
    merged = dict(ours)
    for key, value in golden.items():
        below = merged.get(key)
        merged[key] = overlaid(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


def as_toml(settings: Mapping[str, Any]) -> str:
    """Settings as TOML: one line per top-level key, tables written inline."""
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in settings.items())


def _key(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)  # strings, numbers and booleans are spelled alike
