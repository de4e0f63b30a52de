"""`acp-server trace-to-golden FILE DIR`: a golden folder of what was recorded with `--trace`.

Owns the files on both sides. What the model said is read by `trace_model`, what the editor did by
`trace_steps`. A trace holds no files, so those the tools read are for a person to add.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from acp_server.trace_model import Json, ModelCalls, Row, TraceError
from acp_server.trace_names import Names
from acp_server.trace_steps import Steps

ABOUT = (
    "TO FILL IN: what must hold, in one sentence.\n"
    "TO FILL IN: who demands it: a page of ACP, a public bug report, our promise.\n"
    "Made of a trace; the files its tools read belong in given/workspace.\n"
)


def trace_to_golden(file: str, folder: str) -> int:
    """Make the folder; 0, or 1 with the reason on stderr and nothing written."""
    target = Path(folder)
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise OSError(f"{folder} is there already; a golden is not overwritten")
        files = golden_files(read_trace(Path(file).read_bytes()))
        for name, text in files.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except TraceError as error:
        sys.stderr.write(f"acp-server: {file}, line {error.line}: {error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"acp-server: {error}\n")
        return 1
    sys.stdout.write(f"{folder} is made. Fill in about.md, then record it like any golden.\n")
    return 0


def read_trace(data: bytes) -> list[Row]:
    """The rows of a trace.

    Raises:
        TraceError: A line is not one of a trace's.
    """
    rows = []
    for number, line in enumerate(data.splitlines(), 1):
        try:
            body = json.loads(line)
        except ValueError as error:
            raise TraceError(number, "this is no JSON") from error
        match body:
            case {"from": "editor" | "agent" as sender, "frame": _}:
                pass
            case {"from": "editor" | "agent" as sender, "raw": str()}:
                pass
            case {"from": "editor" as sender, "event": "eof"}:
                pass
            case {"from": "server" | "model" as sender}:
                pass
            case _:
                raise TraceError(number, "a trace has no such line")
        rows.append(Row(number, sender, body))
    if not rows:
        raise TraceError(1, "the trace is empty")
    return rows


def golden_files(rows: list[Row]) -> dict[str, str]:
    """Path below the golden's folder → text.

    Raises:
        TraceError: No golden can be made of these rows.
    """
    calls, names = ModelCalls(rows), Names(rows)
    steps = Steps(rows, calls, names).steps
    script = [
        {
            "session": names.number(call.session, call.line),
            "expect": names.plain(call.request),
            "do": names.plain(call.performance()),
        }
        for call in calls
    ]
    files = {"about.md": ABOUT, "given/model.jsonl": _lines(script), "when.jsonl": _lines(steps)}
    if changed := _changed_settings(rows):
        settings = "".join(f"{key} = {json.dumps(value)}\n" for key, value in changed.items())
        files["given/settings.toml"] = f"[agent]\n{settings}"
    return files


def _changed_settings(rows: Iterable[Row]) -> Json:
    for row in rows:
        match row.body:
            case {"from": "server", "agent": dict(agent)}:
                return agent
    return {}


def _lines(rows: Iterable[Json]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
