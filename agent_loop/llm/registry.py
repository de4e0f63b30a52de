"""Which providers there are, and the one door through which models are called.

Owns names and shutdown. What a provider does with a request is its own affair; who may stand around
a call is decided by the bus.
"""

import logging
from collections.abc import AsyncIterator
from functools import partial
from typing import Protocol, runtime_checkable

import anyio

from agent_loop.chunks import Chunk
from agent_loop.errors import Duplicate, NotFound, in_words
from agent_loop.events.bus import Bus, Disposer
from agent_loop.events.contain import supervise
from agent_loop.llm.provider import STREAM, ModelRequest, Provider

CLOSE_GRACE_S = 1.0

_log = logging.getLogger(__name__)


@runtime_checkable
class Keyed(Protocol):
    """The part of a provider that can be given another key while it runs."""

    @property
    def api_key(self) -> str | None:
        """The key that the next request is sent with."""

    def use_key(self, api_key: str | None) -> None:
        """Send another key from the next request on; answers under way are not disturbed.

        Raises:
            ConfigError: The key cannot be one.
        """


class LlmRegistry:
    """The providers of one harness."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._providers: dict[str, Provider] = {}

    def register(self, provider: Provider) -> Disposer:
        """Make a provider known under its name; closing it after its disposer ran is the caller's affair.

        Raises:
            Duplicate: The name is taken; the earlier provider stays.
        """
        name = provider.name

        if name in self._providers:
            raise Duplicate(f"a provider named {name!r} is registered already")

        self._providers[name] = provider

        def dispose() -> None:
            if self._providers.get(name) is provider:
                del self._providers[name]

        return dispose

    def get(self, name: str) -> Provider:
        """The provider of that name.

        Raises:
            NotFound: There is none; the text lists those there are.
        """
        provider = self._providers.get(name)

        if provider is None:
            known = ", ".join(sorted(self._providers)) or "none"
            raise NotFound(f"no provider is named {name!r}; known: {known}")

        return provider

    def has(self, name: str) -> bool:
        """Whether there is a provider of that name."""
        return name in self._providers

    def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        """The answer to a request, through everyone who stands around `llm/stream`.

        Raises:
            NotFound: At once, when the request that reaches the core names an unknown provider.
            ProviderError: From the iterator.
        """
        return self._bus.run(STREAM, request, self._dispatch)

    async def aclose(self) -> None:
        """Close all providers side by side, each for CLOSE_GRACE_S at most; a failure is only logged."""
        providers, self._providers = self._providers, {}

        with anyio.move_on_after(CLOSE_GRACE_S, shield=True) as scope:
            async with anyio.create_task_group() as group:
                for name, provider in providers.items():
                    group.start_soon(partial(supervise, name, provider.aclose, _report))

        if scope.cancelled_caught:
            _log.warning("some providers did not close within %s s", CLOSE_GRACE_S)

    def _dispatch(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        return self.get(request.provider).stream(request)


def _report(name: str, error: BaseException) -> None:
    _log.warning("provider %s did not close: %s", name, in_words(error))
