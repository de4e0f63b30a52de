"""How many updates a second the client itself can take: no figure of an agent may come near."""

from bench.agents import Launch
from bench.client import Client, now
from bench.said import require_whole
from bench.samples import Values
from bench.sizes import Sizes


def measure(launch: Launch, sizes: Sizes) -> Values:
    """Read ready-made lines from a process that does nothing but write them."""
    client = Client(launch)
    try:
        client.initialize()
        session, _ = client.new_session()
        client.result(client.prompt(session, sizes.ceiling))
        client.heard()
        began = now()
        answer = client.wait(client.prompt(session, sizes.ceiling))
        require_whole(client.heard(), session, sizes.ceiling)
        return {"ceiling.per_s": sizes.ceiling / (answer.at - began)}
    finally:
        client.close()
