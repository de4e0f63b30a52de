"""What the first page of `session/list` takes when very many sessions are stored."""

import statistics
from collections.abc import Callable
from pathlib import Path

from bench.agents import SCRIPTED, Launch, Script
from bench.child import run
from bench.client import Client, Wrong, now
from bench.process import cpu_s
from bench.samples import Samples, Values
from bench.sizes import Sizes

LISTS = 7

Prepare = Callable[[str, Path, Script], Launch]


def measure(prepare: Prepare, home: Path, sizes: Sizes, rounds: int, samples: Samples) -> None:
    """Does all its rounds itself; the sessions are made once."""
    with samples.scene(SCRIPTED, "list"):
        launch = prepare(SCRIPTED, home, ())
        made = run("stored/many_sessions.py", home / "state", sizes.stored)
        for number in range(rounds):
            samples.add(SCRIPTED, number, _round(launch, made["folder"]))


def _round(launch: Launch, folder: str) -> Values:
    ids, wall_s, cpu_each_s = _listed(launch)
    anchor = run("anchors/plain_list.py", folder, len(ids), LISTS)
    if ids != anchor["ids"]:
        raise Wrong("the page does not hold the newest sessions, newest first")
    return {
        "list.ms": wall_s * 1000,
        "list.ratio": wall_s / anchor["wall_s"],
        "list.cpu_ratio": cpu_each_s / anchor["cpu_s"],
    }


def _listed(launch: Launch) -> tuple[list[str], float, float]:
    """The ids of the first page, and what it took in wall and CPU seconds."""
    client = Client(launch)
    try:
        client.initialize()
        result = client.result(client.ask("session/list", {}))
        if not result["sessions"] or "nextCursor" not in result:
            raise Wrong("the list has no first page, or nothing behind it")
        wall_s, cpu_each_s = [], []
        for _ in range(LISTS):
            began, cpu = now(), cpu_s(client.pid)
            answer = client.wait(client.ask("session/list", {}))
            wall_s.append(answer.at - began)
            cpu_each_s.append(cpu_s(client.pid) - cpu)
        client.leave()
    finally:
        client.close()
    ids = [session["sessionId"] for session in result["sessions"]]
    return ids, statistics.median(wall_s), statistics.median(cpu_each_s)
