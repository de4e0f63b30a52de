"""What tools take that touch very much, over programs that do the same by themselves."""

from pathlib import Path

from bench.agents import SCRIPTED
from bench.child import run
from bench.samples import Samples
from bench.sizes import Sizes

TIMES = 3


def measure(home: Path, sizes: Sizes, rounds: int, samples: Samples) -> None:
    """Each round in processes of its own; no agent is around them."""
    for number in range(rounds):
        place = home / f"tools-{number}"
        place.mkdir()
        with samples.scene(SCRIPTED, "tools"):
            values = {
                "command": run("tools/flood.py", place / "command", sizes.flood_bytes),
                "edit": run("tools/edit.py", place / "edit", sizes.edit_bytes, TIMES),
                "search": run("tools/search.py", place / "search", sizes.tree_files, TIMES),
            }
            named = {f"{tool}.{name}": value for tool, told in values.items() for name, value in told.items()}
            samples.add(SCRIPTED, number, named)
