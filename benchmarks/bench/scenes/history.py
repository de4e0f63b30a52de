"""What one more step costs after many turns, over what it costs after few: the agent's CPU alone.

The histories are made once, by real prompts through the scripted provider. Then each of our agents loads
both, each in a process of its own, and the two take turns.
"""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bench.agents import SCRIPTED, Launch, Script
from bench.client import Client, Wrong
from bench.process import cpu_s
from bench.samples import Samples
from bench.sizes import Sizes

DELTAS = 4

Prepare = Callable[[str, Path, Script], Launch]


def measure(
    prepare: Prepare, agents: list[str], home: Path, sizes: Sizes, rounds: int, samples: Samples
) -> None:
    """Make the histories, then compare; does all its rounds itself."""
    made: tuple[str, list[str]] | None = None
    for agent in agents:
        with samples.scene(agent, "history"):
            # One short history per round, so that it stays short.
            made = made or _make(prepare, home / "made", sizes, rounds)
            _compare(prepare, agent, home, made, sizes, samples)


def _make(prepare: Prepare, home: Path, sizes: Sizes, rounds: int) -> tuple[str, list[str]]:
    """The long session and the short ones, stored below `home`."""
    lengths = [sizes.many_turns] + [sizes.few_turns] * rounds
    client = Client(prepare(SCRIPTED, home, [[DELTAS] * turns for turns in lengths]))
    try:
        client.initialize()
        made = []
        for turns in lengths:
            session, _ = client.new_session()
            _turns(client, session, turns)
            made.append(session)
        client.leave()
    finally:
        client.close()
    return made[0], made[1:]


def _compare(
    prepare: Prepare,
    agent: str,
    home: Path,
    made: tuple[str, list[str]],
    sizes: Sizes,
    samples: Samples,
) -> None:
    long, shorts = made
    # One more prompt per round warms it up.
    prompts = [DELTAS] * (sizes.turns + 1)

    with ExitStack() as stack:
        long_client = _loader(stack, prepare, agent, home, "long", [prompts * len(shorts)])
        short_client = _loader(stack, prepare, agent, home, "short", [prompts] * len(shorts))
        long_client.load_session(long)

        for number, short in enumerate(shorts):
            short_client.load_session(short)
            many, few = _cpu_per_step_ms([(long_client, long), (short_client, short)], sizes.turns)
            values = {"history.many_ms": many, "history.few_ms": few, "history.ratio": many / few}
            samples.add(agent, number, values)


def _loader(stack: ExitStack, prepare: Prepare, agent: str, home: Path, name: str, script: Script) -> Client:
    """An agent with a copy of what was made; its sessions lie where they were made."""
    own = home / f"{agent}-{name}"
    shutil.copytree(home / "made", own)
    client = Client(replace(prepare(agent, own, script), cwd=home / "made" / "project"))
    stack.callback(client.close)
    client.initialize()
    return client


def _cpu_per_step_ms(pair: list[tuple[Client, str]], turns: int) -> list[float]:
    """CPU per prompt of both, which take turns prompt by prompt, so that noise falls on both alike."""
    for client, session in pair:
        _turns(client, session, 1)
    spent = [0.0, 0.0]
    for _ in range(turns):
        for at, (client, session) in enumerate(pair):
            before = cpu_s(client.pid)
            _turns(client, session, 1)
            spent[at] += cpu_s(client.pid) - before
    return [cpu / turns * 1000 for cpu in spent]


def _turns(client: Client, session: str, turns: int) -> None:
    for _ in range(turns):
        if client.result(client.prompt(session, DELTAS)).get("stopReason") != "end_turn":
            raise Wrong("a turn of the history did not end as turns do")
    lines = client.heard()
    said = [line for line in lines if line.message.get("method") == "session/update"]
    if len(said) < turns * DELTAS:
        raise Wrong(f"{len(said)} updates came for {turns} turns of {DELTAS} deltas")
