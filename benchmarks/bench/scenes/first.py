"""The first token: how long it is on its way through us, and how long a cold agent makes a person wait."""

from statistics import median
from urllib.request import urlopen

from bench.agents import Launch
from bench.client import Client, now
from bench.said import require_whole, texts
from bench.samples import Values
from bench.sizes import Sizes

DELTAS = 3
PAUSE_MS = 2.0
WHILE_WARMING = 21


def measure(launch: Launch, model_url: str, sizes: Sizes) -> Values:
    """Two agents after each other: one is prompted while it is cold, the other asked for a second session."""
    return {**_prompted(launch, model_url, sizes), **_asked_again(launch, sizes)}


def _prompted(launch: Launch, model_url: str, sizes: Sizes) -> Values:
    client = Client(launch)
    try:
        client.initialize()
        session, opened = client.new_session()
        cold, _ = _first(client, session, model_url)
        warm = [
            read - written
            for written, read in (_first(client, session, model_url) for _ in range(sizes.firsts))
        ]
        return {"first.cold_ms": (cold - opened.at) * 1000, "first.ms": median(warm) * 1000}
    finally:
        client.close()


def _first(client: Client, session: str, model_url: str) -> tuple[float, float]:
    """When the model wrote the first delta of an answer, and when the client read it."""
    client.result(client.prompt(session, DELTAS, PAUSE_MS))
    lines = client.heard()
    require_whole(lines, session, DELTAS)
    with urlopen(f"{model_url}/first", timeout=5) as answer:
        written = float(answer.read())
    return written, next(line.at for line in lines if texts([line], session))


def _asked_again(launch: Launch, sizes: Sizes) -> Values:
    client = Client(launch)
    try:
        client.initialize()
        client.new_session()
        # One after another they last as long as the provider takes to get warm, more or less.
        warming = median(_session_s(client) for _ in range(WHILE_WARMING))
        # An answered prompt: by then the provider is warm.
        session, _ = client.new_session()
        client.result(client.prompt(session, DELTAS, PAUSE_MS))
        idle = median(_session_s(client) for _ in range(sizes.firsts))
        return {"first.new_ms": warming * 1000, "first.new_ratio": warming / idle}
    finally:
        client.close()


def _session_s(client: Client) -> float:
    began = now()
    _, answer = client.new_session()
    return answer.at - began
