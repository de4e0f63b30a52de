"""The benchmark runs: an agent, both anchors and the client, with very few deltas."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="reads the Linux kernel's account of a process"
)


def test_a_quick_run_counts_every_figure_it_was_asked_for(tmp_path: Path) -> None:
    """Issue "The spine", speed and memory: a figure counts only if each delta came and the text is right."""
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--quick", "--rounds", "1"]

    run = subprocess.run(
        [*command, "--only", "scripted", "--json", str(tmp_path / "figures.json")],
        capture_output=True,
        text=True,
        timeout=50,
    )

    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    figures = json.loads((tmp_path / "figures.json").read_text())["figures"]
    assert {figure["part"] for figure in figures} == {"scripted", "client"}
    assert all(figure["result"]["value"] > 0 for figure in figures)
