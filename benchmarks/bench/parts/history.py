"""What one more step costs after many turns, over what it costs after few: the agent's CPU alone.

The histories are made once, by real prompts through the scripted provider. Then each of our agents loads both,
each in a process of its own, and the two take turns.
"""

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.agents import OURS, SCRIPTED, Launch, Script
from bench.client import Client, Wrong
from bench.process import cpu_s
from bench.samples import Samples
from bench.sizes import Sizes

DELTAS = 4

Prepare = Callable[[str, Path, Script], Launch]


def measure(prepare: Prepare, agents: list[str], home: Path, sizes: Sizes, rounds: int, samples: Samples) -> None:
    """Make the histories, then compare; does all its rounds itself."""
    ours = [agent for agent in OURS if agent in agents]
    with samples.part(SCRIPTED, "history"):
        # One short history per round, so that it stays short.
        long, short = _make(prepare, home / "made", sizes, rounds)
        for agent in ours:
            with samples.part(agent, "history"):
                _compare(prepare, agent, home, long, short, sizes, samples)
        return
    reason = samples.failures[SCRIPTED, "history"]
    for agent in ours:
        samples.failures.setdefault((agent, "history"), f"no history could be made: {reason}")


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
    prepare: Prepare, agent: str, home: Path, long: str, short: list[str], sizes: Sizes, samples: Samples
) -> None:
    rounds = len(short)
    with ExitStack() as stack:
        clients = []
        for name in ("long", "short"):
            own = home / f"{agent}-{name}"
            shutil.copytree(home / "made", own)
            # One more prompt per round warms it up.
            prompts = [DELTAS] * ((sizes.turns + 1) * rounds)
            script = [prompts] if name == "long" else [[DELTAS] * (sizes.turns + 1)] * rounds
            client = Client(prepare(agent, own, script))
            stack.callback(client.close)
            client.initialize()
            clients.append(client)

        long_client, short_client = clients
        long_client.load_session(long)
        for number, session in enumerate(short):
            short_client.load_session(session)
            pairs = [(long_client, long), (short_client, session)]
            costs = [_cpu_per_step_ms(client, name, sizes.turns) for client, name in pairs[:: 1 - 2 * (number % 2)]]
            many, few = costs[:: 1 - 2 * (number % 2)]
            samples.add(
                agent, number, {"history.many_ms": many, "history.few_ms": few, "history.ratio": many / few}
            )


def _cpu_per_step_ms(client: Client, session: str, turns: int) -> float:
    _turns(client, session, 1)
    before = cpu_s(client.pid)
    _turns(client, session, turns)
    return (cpu_s(client.pid) - before) / turns * 1000


def _turns(client: Client, session: str, turns: int) -> None:
    for _ in range(turns):
        if client.result(client.prompt(session, DELTAS)).get("stopReason") != "end_turn":
            raise Wrong("a turn of the history did not end as turns do")
    lines = client.heard()
    said = [line for line in lines if line.message.get("method") == "session/update"]
    if len(said) < turns * DELTAS:
        raise Wrong(f"{len(said)} updates came for {turns} turns of {DELTAS} deltas")
