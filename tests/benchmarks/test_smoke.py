"""The benchmark runs: agents, anchors, stored sessions and the client, with very little of everything."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="reads the Linux kernel's account of a process"
)


def test_a_quick_run_counts_every_figure_it_was_asked_for(tmp_path: Path) -> None:
    """Issue "The spine", speed and memory: a figure counts only if each delta came and the text is right."""
    figures = quick_run(tmp_path, "scripted")

    assert {figure["part"] for figure in figures} == {"scripted", "client"}
    assert all(figure["result"]["value"] > 0 for figure in figures)


def test_a_quick_run_reaches_what_does_not_depend_on_the_machine_for_stored_sessions(tmp_path: Path) -> None:
    """Issue "Sessions that last", speed: no fsync per event, 0.35 of the bytes of a row per delta."""
    figures = quick_run(tmp_path, "store,replay,list")

    marks = {figure["name"]: figure["result"]["mark"] for figure in figures}
    assert {figure["part"] for figure in figures} == {"store", "replay", "list", "client"}
    assert "FAILED" not in marks.values()
    assert [marks[f"store.{name}"] for name in ("syncs", "bytes_ratio", "slow_bytes_ratio")] == ["ok"] * 3


def test_a_quick_run_streams_through_both_formats_and_both_sdks(tmp_path: Path) -> None:
    """Issue "Real models", speed: deltas through each provider, and next to the SDK's own typed stream."""
    figures = quick_run(tmp_path, "openai,anthropic,provider")

    assert {figure["part"] for figure in figures} == {"openai", "anthropic", "provider", "client"}
    assert all(figure["result"]["value"] > 0 for figure in figures)


def test_a_quick_run_measures_tools_and_first_tokens(tmp_path: Path) -> None:
    """Issues "Real models" and "Acting with consent", speed: each figure counts."""
    figures = quick_run(tmp_path, "first,tools")

    assert {figure["part"] for figure in figures} == {"first", "tools", "client"}
    assert "FAILED" not in {figure["result"]["mark"] for figure in figures}


def quick_run(tmp_path: Path, only: str) -> list[dict[str, Any]]:
    """The figures of a run of those parts that went well."""
    told = tmp_path / "figures.json"
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--quick", "--rounds", "1"]

    run = subprocess.run(
        [*command, "--only", only, "--json", str(told)], capture_output=True, text=True, timeout=50
    )

    assert (run.returncode, run.stderr) == (0, ""), run.stdout
    figures: list[dict[str, Any]] = json.loads(told.read_text())["figures"]
    return figures
