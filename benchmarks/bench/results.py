"""How well the figures do: medians over the rounds, and a mark.

A ratio is taken round by round against the SDK anchor, and its median is what a goal is held against.
"""

import statistics
from dataclasses import dataclass
from typing import Literal

from bench.agents import FLOOR, SDK
from bench.figures import Figure
from bench.samples import Samples

Mark = Literal["aim", "ok", "miss", "", "FAILED"]


@dataclass(frozen=True)
class Result:
    """What came out for one figure; None where there is no sample.

    Attributes:
        reason: Why it does not count; empty when it does.
    """

    value: float | None
    sdk: float | None
    floor: float | None
    ratio: float | None
    ratio_range: tuple[float, float] | None
    floor_ratio: float | None
    mark: Mark
    reason: str


def result(figure: Figure, samples: Samples) -> Result:
    """What all rounds together say of one figure."""
    own = samples.of(figure.agent, figure.name)
    sdk = samples.of(SDK, figure.name)
    floor = samples.of(FLOOR, figure.name)
    ratios = _ratios(own, sdk) if figure.of_sdk else []
    value, ratio = _median(list(own.values())), _median(ratios)

    reason = _reason(figure, samples)
    if value is None:
        reason = reason or "no value"
    return Result(
        value=value,
        sdk=_median(list(sdk.values())),
        floor=_median(list(floor.values())),
        ratio=ratio,
        ratio_range=(min(ratios), max(ratios)) if ratios else None,
        floor_ratio=_median(_ratios(floor, sdk)) if figure.of_sdk else None,
        mark="FAILED" if reason else _mark(figure, ratio if figure.of_sdk else value),
        reason=reason,
    )


def _ratios(own: dict[int, float], sdk: dict[int, float]) -> list[float]:
    return [value / sdk[number] for number, value in own.items() if sdk.get(number)]


def _median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


def _reason(figure: Figure, samples: Samples) -> str:
    """What went wrong for anybody this figure needs."""
    needed = [figure.agent, SDK, FLOOR] if figure.of_sdk else [figure.agent]
    failures = [(agent, samples.failures.get((agent, figure.scene))) for agent in needed]
    return "; ".join(f"{agent}: {reason}" for agent, reason in failures if reason)


def _mark(figure: Figure, reached: float | None) -> Mark:
    if figure.must is None:
        return ""

    def within(goal: float | None) -> bool:
        if goal is None or reached is None:
            return False
        return reached >= goal if figure.more_is_better else reached <= goal

    if within(figure.aim):
        return "aim"
    return "ok" if within(figure.must) else "miss"
