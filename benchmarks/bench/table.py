"""The table a run ends with, and the same as JSON."""

import json
from dataclasses import asdict
from pathlib import Path

from bench.figures import Figure
from bench.results import Result
from bench.samples import Samples

HEADS = ("figure", "ours", "sdk", "floor", "ours/sdk", "(range)", "floor/sdk", "must", "aim", "")
WIDTHS = (44, 11, 11, 11, 9, 13, 9, 7, 7, 6)


def as_text(rows: list[tuple[Figure, Result]]) -> str:
    """One line per figure, and one more below for every figure that does not count."""
    lines = [_line(HEADS), "-" * len(_line(HEADS))]
    part = rows[0][0].part if rows else ""
    for figure, result in rows:
        if figure.part != part:
            part = figure.part
            lines.append("")
        lines.append(_line(_cells(figure, result)))
        if result.reason:
            lines.append(f"    does not count: {result.reason}")
    return "\n".join(lines)


def write_json(path: Path, rows: list[tuple[Figure, Result]], samples: Samples, machine: str) -> None:
    """Results and every sample."""
    data = {
        "machine": machine,
        "figures": [{**asdict(figure), "result": asdict(result)} for figure, result in rows],
        "samples": samples.values,
        "failures": [
            {"agent": agent, "scene": scene, "reason": reason}
            for (agent, scene), reason in samples.failures.items()
        ],
    }
    path.write_text(json.dumps(data, indent=1) + "\n", "utf-8")


def _cells(figure: Figure, result: Result) -> tuple[str, ...]:
    sign = ("≥ " if figure.more_is_better else "≤ ") if figure.must is not None else ""
    span = result.ratio_range
    return (
        figure.title,
        _number(result.value),
        _number(result.sdk),
        _number(result.floor),
        _number(result.ratio),
        f"({_number(span[0])}-{_number(span[1])})" if span else "",
        _number(result.floor_ratio),
        sign + _goal(figure.must),
        _goal(figure.aim),
        result.mark,
    )


def _line(cells: tuple[str, ...]) -> str:
    padded = [f"{cells[0]:<{WIDTHS[0]}}"]
    padded += [f"{cell:>{width}}" for cell, width in zip(cells[1:], WIDTHS[1:], strict=True)]
    return " ".join(padded).rstrip()


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def _goal(goal: float | None) -> str:
    return "" if goal is None else f"{goal:g}"
