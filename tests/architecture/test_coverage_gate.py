"""Holds the coverage gate to its word: a room that falls short fails the run and is named."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FULL_ROOMS = [
    *(f"agent_loop/{room}/a.py" for room in ("events", "session", "agent", "loop")),
    *(f"acp_server/{room}/a.py" for room in ("rpc", "bridge", "codec", "methods")),
]


def _file(
    lines: int = 100, missing_lines: tuple[int, ...] = (), branch: tuple[int, int] | None = None
) -> Any:
    return {
        "summary": {
            "num_statements": lines,
            "covered_lines": lines - len(missing_lines),
            "num_branches": 2,
            "covered_branches": 1 if branch else 2,
        },
        "missing_lines": list(missing_lines),
        "missing_branches": [list(branch)] if branch else [],
    }


def _gate(tmp_path: Path, files: dict[str, Any]) -> tuple[int, str]:
    report = tmp_path / "coverage.json"
    report.write_text(json.dumps({"files": files}))
    gate = ROOT / ".ci" / "coverage_gate.py"
    done = subprocess.run(
        [sys.executable, gate, report], capture_output=True, text=True, check=False, timeout=30
    )
    return done.returncode, done.stdout


def test_rooms_that_keep_their_promise_pass(tmp_path: Path) -> None:
    """Our promise: 95 % is enough where 100 % is not promised."""
    files = {path: _file() for path in FULL_ROOMS}
    files["acp_server/serve.py"] = _file(missing_lines=(1, 2, 3, 4))

    code, table = _gate(tmp_path, files)

    assert (code, "SHORT" in table) == (0, False)


def test_one_missing_branch_fails_a_room_that_promises_everything(tmp_path: Path) -> None:
    """Our promise: 100 % of lines and branches where a slip is hardest to see."""
    files = {path: _file() for path in FULL_ROOMS}
    files["agent_loop/loop/a.py"] = _file(branch=(7, -1))

    code, table = _gate(tmp_path, files)

    assert (code, "agent_loop/loop/a.py: branch 7 -> exit" in table) == (1, True)


def test_a_room_below_its_floor_fails_and_its_lines_are_named(tmp_path: Path) -> None:
    """Our promise: the other rooms cannot hide one untested room."""
    files = {path: _file(lines=10_000) for path in FULL_ROOMS}
    files["agent_loop/tools/bundled/read.py"] = _file(missing_lines=(3, 4, 5, 9, 11, 12))

    code, table = _gate(tmp_path, files)

    assert (code, "agent_loop/tools/bundled/read.py: lines 3-5, 9, 11-12" in table) == (1, True)


def test_a_promising_room_that_was_not_measured_fails(tmp_path: Path) -> None:
    """Our promise: renaming a room doesn't lift its promise."""
    files = {path: _file() for path in FULL_ROOMS[1:]}

    code, table = _gate(tmp_path, files)

    assert (code, "agent_loop/events promises 100 %" in table) == (1, True)
