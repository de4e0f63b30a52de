"""What a provider costs by itself, next to its SDK's own typed stream: a process without an agent."""

from collections.abc import Sequence

from bench.child import run
from bench.samples import Samples
from bench.sizes import Sizes

PAIRS = 3


def measure(agents: Sequence[str], model_url: str, sizes: Sizes, rounds: int, samples: Samples) -> None:
    """Does all its rounds itself."""
    for number in range(rounds):
        for agent in agents:
            with samples.scene(agent, "provider"):
                spent = run("providers/bare_stream.py", agent, model_url, sizes.stream, PAIRS)
                samples.add(
                    agent,
                    number,
                    {
                        "provider.cpu_us": spent["ours_us"],
                        "provider.ratio": spent["ours_us"] / spent["typed_us"],
                    },
                )
