"""One golden folder as data: what is given, what the editor does, what the person should know.

Owns the folder's layout and its reading. Playing it belongs to `player`, comparing to `recording`.

    about.md              three lines: what must hold · who demands it · note
    given/model.jsonl     what the scripted model says, one line per model call; `$cwd` is the workspace
    given/workspace/      files of the session's directory at the start (optional)
    given/settings.toml   settings laid over the harness's own (optional)
    when.jsonl            the editor's side, see `player`
    then/                 recorded: transcript.jsonl, session.jsonl or session-<n>.jsonl, workspace/

The note may end in `allows: WORD, WORD`, which announces what would otherwise fail the golden; the words
are those of `ALLOWANCES`.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ALLOWANCES", "GOLDENS", "Golden", "GoldenError", "Json", "all_goldens", "read_golden"]

Json = dict[str, Any]
GOLDENS = Path(__file__).parents[2] / "goldens"

ALLOWANCES = {
    "stderr": "the server may write to stderr",
    "unknown-tool": "a stored tool result may carry the code UNKNOWN_TOOL",
    "internal-error": "a stored result or an answer may be an internal error",
    "no-probe": "the server cannot take another prompt afterwards, as no session can be made",
    "no-reload": "a second process need not be able to load the sessions",
}


class GoldenError(AssertionError):
    """A golden folder, or one of its steps, makes no sense as written."""


@dataclass(frozen=True)
class Golden:
    path: Path
    about: tuple[str, ...]
    script: list[Json]
    steps: list[Json]
    settings: Json

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def workspace(self) -> Path:
        return self.path / "given" / "workspace"

    @property
    def then(self) -> Path:
        return self.path / "then"

    @property
    def allows(self) -> frozenset[str]:
        found = re.search(r"allows:\s*([\w-]+(?:\s*,\s*[\w-]+)*)", self.about[-1] if self.about else "")
        return frozenset(re.split(r"\s*,\s*", found[1])) if found else frozenset()


def all_goldens() -> list[Path]:
    """The folders of all goldens, in the order of their names."""
    return sorted(path for path in GOLDENS.glob("*") if path.is_dir())


def read_golden(path: Path) -> Golden:
    """Read a golden folder.

    Raises:
        GoldenError: A needed file is missing, or a line is no JSON object.
    """
    settings = path / "given" / "settings.toml"
    return Golden(
        path,
        tuple(_text(path / "about.md").splitlines()),
        _rows(path / "given" / "model.jsonl"),
        _rows(path / "when.jsonl"),
        tomllib.loads(_text(settings)) if settings.exists() else {},
    )


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise GoldenError(f"{path} is missing") from None


def _rows(path: Path) -> list[Json]:
    rows = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise GoldenError(f"{path}:{number} is no JSON: {error}") from None
        if not isinstance(row, dict):
            raise GoldenError(f"{path}:{number} is no JSON object")
        rows.append(row)
    return rows
