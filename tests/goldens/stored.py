"""The facts a server left in its state directory, one per row, runs unfolded.

Owns reading `sessions/**/<id>.jsonl`: a header row, then rows of `{seq, time, type, data}`. An
`assistant/run` row stands for as many `assistant/chunk` facts as it has texts; packing on disk must never
show in a golden.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from tests.goldens.golden import Json

__all__ = ["stored_facts", "unfold"]

_DELTA = {"text": "text-delta", "reasoning": "reasoning-delta"}


def stored_facts(state: Path) -> dict[str, list[Json]]:
    """Session id → its facts, for every session in the store; a session without facts has an empty list."""
    sessions: dict[str, list[Json]] = {}
    for path in sorted(state.glob("sessions/**/*.jsonl")):
        header, *rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        sessions[header["id"]] = [fact for row in rows for fact in unfold(row)]
    return sessions


def unfold(row: Json) -> Iterator[Json]:
    """The facts one row stands for."""
    if row["type"] != "assistant/run":
        yield row
        return

    run = row["data"]
    time = row["time"]
    for offset, (text, dt_ms) in enumerate(zip(run["texts"], run["dt_ms"], strict=True)):
        time += dt_ms
        chunk = {"type": _DELTA[run["kind"]], "index": run["index"], "text": text}
        place = {key: run[key] for key in ("turn", "step", "attempt")}
        yield {
            "seq": row["seq"] + offset,
            "time": time,
            "type": "assistant/chunk",
            "data": {**place, "chunk": chunk},
        }
