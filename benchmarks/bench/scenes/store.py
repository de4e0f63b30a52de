"""What a store costs a stream: the loop and its recorder alone, in a process without an editor."""

from pathlib import Path

from bench.agents import SCRIPTED
from bench.child import run
from bench.client import Wrong
from bench.samples import Samples, Values
from bench.sizes import Sizes

PAIRS = 9


def measure(home: Path, sizes: Sizes, rounds: int, samples: Samples) -> None:
    """Does all its rounds itself."""
    with samples.scene(SCRIPTED, "store"):
        for number in range(rounds):
            samples.add(SCRIPTED, number, _round(home / str(number), sizes.stream))


def _round(home: Path, deltas: int) -> Values:
    for name in ("append", "syncs", "persist"):
        (home / name).mkdir(parents=True)
    stream = run("stored/append.py", home / "append", deltas, PAIRS)
    syncs = run("stored/syncs.py", home / "syncs", deltas)["syncs"]
    if not syncs:
        raise Wrong("a turn was called stored, and nothing was synced")
    persist = run("stored/persist.py", home / "persist", deltas, PAIRS)

    disk, memory = stream["disk"], stream["memory"]
    return {
        "store.stream_us": disk["logged_s"] / deltas * 1e6,
        "store.stream_ratio": disk["logged_s"] / memory["logged_s"],
        "store.cpu_ratio": disk["cpu_s"] / memory["cpu_s"],
        "store.stored_ratio": disk["stored_s"] / memory["stored_s"],
        "store.syncs": syncs,
        "store.persist_ms": persist["packed_s"] * 1000,
        "store.persist_ratio": persist["packed_s"] / persist["rows_s"],
        "store.bytes": disk["added_bytes"] / deltas,
        "store.bytes_ratio": disk["added_bytes"] / persist["rows_bytes"],
        "store.slow_bytes_ratio": persist["slow_bytes"] / persist["rows_bytes"],
    }
