"""What it takes to bring a long session back: `session/load`, from the request to its answer.

The session is made once and loaded by a fresh process in every round; so is what it is compared with.
"""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.agents import SCRIPTED, Launch, Script
from bench.child import run
from bench.client import Client, Line, Wrong, now
from bench.process import cpu_s, peak_mb, resident_mb
from bench.samples import Samples, Values
from bench.sizes import Sizes

MB = 1 << 20

Prepare = Callable[[str, Path, Script], Launch]


def measure(prepare: Prepare, home: Path, sizes: Sizes, rounds: int, samples: Samples) -> None:
    """Does all its rounds itself."""
    with samples.scene(SCRIPTED, "replay"):
        launch, rows = prepare(SCRIPTED, home, ()), home / "rows.jsonl"
        made = run("stored/long_session.py", home / "state", launch.cwd, rows, sizes.events)
        for number in range(rounds):
            samples.add(SCRIPTED, number, _round(launch, made, rows))


def _round(launch: Launch, made: dict[str, Any], rows: Path) -> Values:
    values = _load(launch, made)
    anchor = run("anchors/pydantic_log.py", rows)
    if anchor["events"] != made["events"]:
        raise Wrong(f"pydantic read {anchor['events']} of {made['events']} events")
    values["replay.ratio"] = values["replay.ms"] / anchor["wall_s"] / 1000
    values["replay.cpu_ratio"] = values["replay.cpu_ms"] / anchor["cpu_s"] / 1000
    return values


def _load(launch: Launch, made: dict[str, Any]) -> Values:
    client = Client(launch)
    try:
        client.initialize()
        # The first load of all loads what the agent loads late.
        client.load_session(made["short"])
        idle_mb, cpu, began = resident_mb(client.pid), cpu_s(client.pid), now()
        request = client.ask_load(made["long"])
        client.result(request)
        spent = cpu_s(client.pid) - cpu
        grown_mb, peak = resident_mb(client.pid) - idle_mb, peak_mb(client.pid) - idle_mb
        _require_shown(client.heard(), made)
        client.leave()
    finally:
        client.close()
    return {
        "replay.ms": (client.wait(request).at - began) * 1000,
        "replay.cpu_ms": spent * 1000,
        "replay.event_bytes": grown_mb * MB / made["events"],
        "replay.peak_bytes": peak * MB / made["events"],
    }


def _require_shown(lines: list[Line], made: dict[str, Any]) -> None:
    """Raises Wrong unless a person sees all of it again."""
    shown: Counter[str] = Counter()
    for line in lines:
        update = (line.message.get("params") or {}).get("update") or {}
        match update.get("sessionUpdate"):
            case "user_message_chunk":
                shown["prompts"] += 1
            case "tool_call":
                shown["calls"] += 1
            case "agent_message_chunk":
                shown["said_chars"] += len(update["content"]["text"])
            case "agent_thought_chunk":
                shown["thought_chars"] += len(update["content"]["text"])
    if shown != made["shown"]:
        raise Wrong(f"a replay showed {dict(shown)}, not {made['shown']}")
