"""What a run collects: one value per figure, agent and round, or the reason why there is none."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench.client import Wrong

Values = dict[str, float]


@dataclass
class Samples:
    """All rounds of all agents.

    Attributes:
        values: Agent → figure → round → value.
        failures: (Agent, part) → the first reason why figures of that part do not count.
    """

    values: dict[str, dict[str, dict[int, float]]] = field(default_factory=dict)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, agent: str, number: int, values: Values) -> None:
        """Keep the values of one round."""
        for figure, value in values.items():
            self.values.setdefault(agent, {}).setdefault(figure, {})[number] = value

    def of(self, agent: str, figure: str) -> dict[int, float]:
        """Round → value."""
        return self.values.get(agent, {}).get(figure, {})

    @contextmanager
    def part(self, agent: str, name: str) -> Iterator[None]:
        """Whatever goes wrong inside makes that agent's figures of this part not count."""
        try:
            yield
        except (Wrong, OSError) as error:
            self.failures.setdefault((agent, name), str(error) or type(error).__name__)
