"""One agent, one session: start, memory, the long stream, and how it leaves."""

from bench.agents import Launch, Script
from bench.client import Client, now
from bench.process import cpu_s, peak_mb, resident_mb
from bench.said import require_whole
from bench.samples import Values
from bench.sizes import Sizes

WARM_DELTAS = 1


def script(sizes: Sizes) -> Script:
    """What the scripted provider will be asked for."""
    return [[WARM_DELTAS, sizes.stream]]


def measure(launch: Launch, sizes: Sizes) -> Values:
    """Run one agent from its start to its end."""
    values: Values = {}
    client = Client(launch)
    try:
        session = _start(client, values)
        _stream(client, session, sizes.stream, values)
        values["memory.peak_mb"] = peak_mb(client.pid)
        values["exit.ms"] = client.leave() * 1000
    finally:
        client.close()
    return values


def _start(client: Client, values: Values) -> str:
    answer = client.initialize()
    values["start.cpu_ms"] = cpu_s(client.pid) * 1000
    values["start.ms"] = (answer.at - client.started) * 1000

    session, answer = client.new_session()
    values["ready.cpu_ms"] = cpu_s(client.pid) * 1000
    values["ready.ms"] = (answer.at - client.started) * 1000
    values["memory.idle_mb"] = resident_mb(client.pid)
    return session


def _stream(client: Client, session: str, deltas: int, values: Values) -> None:
    # The first prompt loads what the agent loads late.
    client.result(client.prompt(session, WARM_DELTAS))
    require_whole(client.heard(), session, WARM_DELTAS)
    values["memory.warm_mb"] = resident_mb(client.pid)

    cpu_before, began = cpu_s(client.pid), now()
    answer = client.wait(client.prompt(session, deltas))
    cpu = cpu_s(client.pid) - cpu_before
    require_whole(client.heard(), session, deltas)
    values["stream.per_s"] = deltas / (answer.at - began)
    values["stream.cpu_us"] = cpu / deltas * 1e6
