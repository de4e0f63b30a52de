"""One answer through our provider and through its SDK's own typed stream, in turn, and the CPU of each.

No loop, no log and no editor: what a delta costs until it is a chunk here, and a typed event there. Run with
the kind, the model server's address, the number of deltas and how often; prints the medians.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from statistics import median
from time import process_time

from agent_loop.chunks import TextDelta
from agent_loop.llm.provider import ModelRequest, Provider
from agent_loop.llm.providers.anthropic_messages import Anthropic
from agent_loop.llm.providers.openai_compatible import OpenAICompatible
from agent_loop.messages import Message, Text

KEY = "bench"
WARM_DELTAS = 10

Ask = Callable[[str], Awaitable[int]]
"""Asks for an answer and reads it to its end; how many deltas it had."""


def ours(provider: Provider) -> Ask:
    """Through our provider."""

    async def ask(prompt: str) -> int:
        request = ModelRequest(provider.name, "bench", (Message("user", (Text(prompt),)),))
        return sum([1 async for chunk in provider.stream(request) if type(chunk) is TextDelta])

    return ask


def openai_typed(url: str) -> Ask:
    """Through OpenAI's SDK as its page shows it."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key=KEY)

    async def ask(prompt: str) -> int:
        stream = await client.chat.completions.create(
            model="bench", messages=[{"role": "user", "content": prompt}], stream=True
        )
        return sum([1 async for event in stream if event.choices and event.choices[0].delta.content])

    return ask


def anthropic_typed(url: str) -> Ask:
    """Through Anthropic's SDK as its page shows it."""
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key=KEY)

    async def ask(prompt: str) -> int:
        stream = await client.messages.create(
            model="bench", max_tokens=1, messages=[{"role": "user", "content": prompt}], stream=True
        )
        return sum([1 async for event in stream if event.type == "content_block_delta"])

    return ask


async def main(kind: str, url: str, deltas: int, pairs: int) -> None:
    """Measure, and print one JSON object."""
    asks = {
        "openai": lambda: {"ours": ours(OpenAICompatible(kind, url, KEY)), "typed": openai_typed(url)},
        "anthropic": lambda: {"ours": ours(Anthropic(kind, url, KEY)), "typed": anthropic_typed(url)},
    }[kind]()
    spent: dict[str, list[float]] = {name: [] for name in asks}

    for ask in asks.values():
        await ask(f"bench deltas={WARM_DELTAS} pause_ms=0")

    for pair in range(pairs):
        for name in asks if pair % 2 == 0 else reversed(asks):
            began = process_time()
            seen = await asks[name](f"bench deltas={deltas} pause_ms=0")
            spent[name].append((process_time() - began) / deltas * 1e6)
            if seen != deltas:
                raise SystemExit(f"{name} gave {seen} of {deltas} deltas")

    print(json.dumps({f"{name}_us": median(values) for name, values in spent.items()}))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
