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
        failures: (Agent, scene) → the first reason why figures of that scene do not count.
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
    def scene(self, agent: str, name: str) -> Iterator[None]:
        """Whatever goes wrong inside makes that agent's figures of this scene not count."""
        try:
            yield
        except Wrong as error:
            self.failures.setdefault((agent, name), str(error))
        except (OSError, LookupError, TypeError, ValueError) as error:
            # It wrote what is no answer, or is gone.
            self.failures.setdefault((agent, name), f"{type(error).__name__}: {error}")
