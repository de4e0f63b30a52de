"""A client that stops reading: what the agents pile up, and whether they still listen.

All agents stall at the same time, since a stalled agent has nothing to do. While nothing is read, a cancel
and a `session/new` are sent; that they are heard can only be seen once reading resumes.
"""

import time
from contextlib import ExitStack

from bench.agents import Launch, Script
from bench.client import Client, now
from bench.process import resident_mb
from bench.said import require_prefix, require_whole, texts
from bench.samples import Samples, Values
from bench.sizes import Sizes

WARM_DELTAS = 1_000
ASK_AFTER = 2 / 3
"""The part of the stall after which the cancel and the `session/new` are sent."""


def script(sizes: Sizes) -> Script:
    """What the scripted provider will be asked for."""
    return [[WARM_DELTAS, sizes.flood]]


def measure(launches: dict[str, Launch], sizes: Sizes, number: int, samples: Samples) -> None:
    """Stall all agents, then resume one after another."""
    running: dict[str, _Stalled] = {}
    with ExitStack() as stack:
        for agent, launch in launches.items():
            with samples.scene(agent, "stall"):
                client = Client(launch)
                stack.callback(client.close)
                running[agent] = _Stalled(client, sizes.flood)

        time.sleep(sizes.stall_s * ASK_AFTER)
        for agent, stalled in running.items():
            with samples.scene(agent, "stall"):
                stalled.disturb()
        time.sleep(sizes.stall_s * (1 - ASK_AFTER))

        for agent, stalled in running.items():
            with samples.scene(agent, "stall"):
                samples.add(agent, number, stalled.resume())


class _Stalled:
    """One agent that streams into a pipe nobody reads."""

    def __init__(self, client: Client, deltas: int) -> None:
        self._client = client
        client.initialize()
        self._session, _ = client.new_session()
        client.result(client.prompt(self._session, WARM_DELTAS))
        require_whole(client.heard(), self._session, WARM_DELTAS)
        self._before_mb = resident_mb(client.pid)
        self._prompt = client.prompt(self._session, deltas)
        self._new = 0

    def disturb(self) -> None:
        self._client.cancel(self._session)
        self._new = self._client.ask("session/new", {"cwd": self._client.cwd, "mcpServers": []})

    def resume(self) -> Values:
        client = self._client
        grown_mb = resident_mb(client.pid) - self._before_mb
        began = now()
        cancelled, new = client.wait(self._prompt), client.wait(self._new)
        assert new.result["sessionId"]
        lines = client.heard()
        require_prefix(lines, self._session)
        return {
            "stall.grown_mb": grown_mb,
            "stall.cancel_ms": (cancelled.at - began) * 1000,
            "stall.new_ms": (new.at - began) * 1000,
            "stall.piled_up": len(texts(lines, self._session)),
        }
