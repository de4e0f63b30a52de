#!/usr/bin/env python3
"""The benchmark: drives our agents and two anchors over stdio, in turn, and prints one table of ratios.

    make bench
    make bench BENCH_ARGS='--rounds 3 --only scripted,cancel --json FILE'

Exits 1 when a figure does not count: a delta was missing, a text was not the one asked for, or an agent
failed. A missed goal is only marked. `README.md` says what every figure means.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

from bench.agents import BLAST, FLOOR, OURS, SCRIPTED, SDK, Launch, Script, prepare
from bench.figures import (
    ALONE,
    CEILING,
    CROWD,
    FIGURES,
    FIRST,
    HISTORY,
    LIST,
    PARTS,
    PROVIDER,
    REPLAY,
    STALL,
    STORE,
    TOOLS,
    Figure,
)
from bench.model import model_server
from bench.results import result
from bench.samples import Samples
from bench.scenes import alone, ceiling, crowd, first, history, listing, provider, replay, stall, store, tools
from bench.sizes import QUICK, Sizes
from bench.table import as_text, write_json

WITHOUT_ANCHORS = (FIRST, HISTORY, PROVIDER, STORE, REPLAY, LIST, TOOLS)
"""Scenes that compare ours with itself, or with something that is no agent."""


class Run:
    """One run: which agents take part in which scene, and the directory all of it lives in."""

    def __init__(self, figures: list[Figure], sizes: Sizes, home: Path, model_url: str) -> None:
        self.samples = Samples()
        self._figures = figures
        self._sizes = sizes
        self._home = home
        self._model_url = model_url
        self._number = count()

    def rounds(self, rounds: int) -> None:
        """Do every scene that a wanted figure needs."""
        self._warm_up()
        for number in range(rounds):
            self._each(ALONE, number, alone.script, lambda _, launch: alone.measure(launch, self._sizes))
            self._each(CEILING, number, None, lambda _, launch: ceiling.measure(launch, self._sizes))
            self._each(CROWD, number, crowd.script, self._crowd)
            self._each(
                FIRST, number, None, lambda _, launch: first.measure(launch, self._model_url, self._sizes)
            )
            self._stall(number)
        if agents := self._agents(PROVIDER):
            provider.measure(agents, self._model_url, self._sizes, rounds, self.samples)
        if self._agents(STORE):
            store.measure(self._fresh(), self._sizes, rounds, self.samples)
        if self._agents(REPLAY):
            replay.measure(self._launch, self._fresh(), self._sizes, rounds, self.samples)
        if self._agents(LIST):
            listing.measure(self._launch, self._fresh(), self._sizes, rounds, self.samples)
        if self._agents(TOOLS):
            tools.measure(self._fresh(), self._sizes, rounds, self.samples)
        if agents := self._agents(HISTORY):
            history.measure(self._launch, agents, self._fresh(), self._sizes, rounds, self.samples)

    def _warm_up(self) -> None:
        """One small run of every agent, not measured: it compiles what is not compiled yet."""
        small = Sizes(stream=10)
        for agent in self._agents(ALONE) + self._agents(CROWD):
            with self.samples.scene(agent, "warm-up"):
                alone.measure(self._launch(agent, self._fresh(), alone.script(small)), small)

    def _each(
        self,
        scene: str,
        number: int,
        script: Callable[[Sizes], Script] | None,
        measure: Callable[[str, Launch], dict[str, float]],
    ) -> None:
        agents = self._agents(scene)
        # A B C, then C B A: whatever drifts falls on all alike.
        for agent in agents if number % 2 == 0 else agents[::-1]:
            with self.samples.scene(agent, scene):
                launch = self._launch(agent, self._fresh(), script(self._sizes) if script else ())
                self.samples.add(agent, number, measure(agent, launch))

    def _crowd(self, agent: str, launch: Launch) -> dict[str, float]:
        return crowd.measure(launch, self._sizes, paced=agent != SCRIPTED)

    def _stall(self, number: int) -> None:
        script = stall.script(self._sizes)
        launches = {agent: self._launch(agent, self._fresh(), script) for agent in self._agents(STALL)}
        if launches:
            stall.measure(launches, self._sizes, number, self.samples)

    def _agents(self, scene: str) -> list[str]:
        """Who takes part: the agents of the wanted figures, and the anchors where they can do the same."""
        ours = [
            agent for agent in OURS if any(it.scene == scene and it.agent == agent for it in self._figures)
        ]
        if any(it.scene == scene and it.agent == BLAST for it in self._figures):
            return [BLAST]
        if not ours or scene in WITHOUT_ANCHORS:
            return ours
        return [SDK, FLOOR, *ours]

    def _fresh(self) -> Path:
        home = self._home / f"run-{next(self._number)}"
        home.mkdir()
        return home

    def _launch(self, agent: str, home: Path, script: Script) -> Launch:
        return prepare(agent, home, script, self._model_url)


def main() -> int:
    """Run what the command line asks for; the exit status."""
    arguments = _arguments()
    wanted = arguments.only or PARTS
    figures = [figure for figure in FIGURES if figure.part in (*wanted, "client")]
    sizes = QUICK if arguments.quick else Sizes()
    before = os.getloadavg()

    with tempfile.TemporaryDirectory(prefix="acp-bench-") as home, model_server() as url:
        run = Run(figures, sizes, Path(home), url)
        run.rounds(arguments.rounds)

    rows = [(figure, result(figure, run.samples)) for figure in figures]
    machine = (
        f"load average {before[0]:.2f} before and {os.getloadavg()[0]:.2f} after, {os.cpu_count()} cores, "
        f"Python {sys.version.split()[0]}, {arguments.rounds} rounds"
    )
    print(as_text(rows))
    print(machine)
    if arguments.json:
        write_json(arguments.json, rows, run.samples, machine)
    return 1 if any(it.mark == "FAILED" for _, it in rows) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Compare our agents with two anchors, in one interleaved run."
    )
    parser.add_argument("--rounds", type=_rounds, default=5, metavar="N", help="how often (default 5)")
    parser.add_argument(
        "--only", type=_parts, metavar="PART,...", help=f"some figures only: {', '.join(PARTS)}"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results and all samples there too")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: shows that it works, measures nothing"
    )
    return parser.parse_args()


def _rounds(text: str) -> int:
    if (rounds := int(text)) < 1:
        raise argparse.ArgumentTypeError("there must be a round")
    return rounds


def _parts(text: str) -> list[str]:
    parts = text.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        raise argparse.ArgumentTypeError(f"no part {unknown[0]!r}; there are {', '.join(PARTS)}")
    return parts


if __name__ == "__main__":
    sys.exit(main())
