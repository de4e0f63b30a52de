"""Fails when a room is covered less than it promised.

    python .ci/coverage_gate.py coverage.json

Reads what `coverage json` wrote, lines and branches together. A room is a first-level folder or module of a
package. Per room, not per project: one number for all lets a well-tested room hide an untested one.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path, PurePath
from typing import Any

PACKAGES = ("agent_loop", "acp_server")
FULL = {
    "agent_loop/events",
    "agent_loop/session",
    "agent_loop/agent",
    "agent_loop/loop",
    "acp_server/rpc",
    "acp_server/bridge",
    "acp_server/codec",
    "acp_server/methods",
}
FLOOR_PERCENT = 95.0


def main(report_path: str) -> int:
    rooms = files_by_room(json.loads(Path(report_path).read_bytes())["files"])
    unmeasured = sorted(FULL - rooms.keys())
    short = []

    for room, files in sorted(rooms.items()):
        need = 100.0 if room in FULL else FLOOR_PERCENT
        have = percent(files)
        if have < need:
            short.append(room)
        print(f"{'SHORT' if have < need else 'ok':5}  {have:6.2f} of {need:3.0f} %  {room}")

    for room in short:
        print(f"\n{room} misses:")
        print("\n".join(f"  {line}" for line in missing(rooms[room])))

    for room in unmeasured:
        print(f"SHORT  {room} promises 100 % and was not measured at all")

    return 1 if short or unmeasured else 0


def files_by_room(files: dict[str, Any]) -> dict[str, dict[str, Any]]:
    rooms: dict[str, dict[str, Any]] = defaultdict(dict)

    for path, file in files.items():
        parts = PurePath(path).with_suffix("").parts
        at = next((at for at, part in enumerate(parts) if part in PACKAGES), None)
        if at is not None:
            rooms["/".join(parts[at : at + 2])][path] = file

    return rooms


def percent(files: dict[str, Any]) -> float:
    done = sum(f["summary"]["covered_lines"] + f["summary"]["covered_branches"] for f in files.values())
    owed = sum(f["summary"]["num_statements"] + f["summary"]["num_branches"] for f in files.values())
    return 100.0 * done / owed if owed else 100.0


def missing(files: dict[str, Any]) -> list[str]:
    found = []

    for path, file in sorted(files.items()):
        if file["missing_lines"]:
            found.append(f"{path}: lines {spans(file['missing_lines'])}")
        # coverage writes a branch that leaves the function as a negative line.
        for source, target in file["missing_branches"]:
            found.append(f"{path}: branch {source} -> {target if target > 0 else 'exit'}")

    return found


def spans(lines: list[int]) -> str:
    runs: list[list[int]] = []

    for line in lines:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])

    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: coverage_gate.py coverage.json")
    sys.exit(main(sys.argv[1]))
