"""The registry of providers: names, the one door, and the end."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import anyio
import pytest

from agent_loop.chunks import Chunk, Finish, TextDelta
from agent_loop.errors import Duplicate, NotFound
from agent_loop.events.bus import Bus
from agent_loop.llm import registry as registry_module
from agent_loop.llm.provider import STREAM, ModelRequest
from agent_loop.llm.registry import LlmRegistry


class Said:
    """A provider that says its own name."""

    def __init__(self, name: str, closing: Callable[[], object] | None = None) -> None:
        self.name = name
        self.closed = 0
        self._closing = closing

    async def load(self) -> None:
        """Nothing to load."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Chunk]:
        yield TextDelta(0, f"{self.name}/{request.model}")
        yield Finish("stop")

    async def models(self) -> tuple[str, ...]:
        return ()

    async def aclose(self) -> None:
        self.closed += 1

        if self._closing is not None:
            self._closing()


def request(provider: str, model: str = "m") -> ModelRequest:
    return ModelRequest(provider, model, ())


async def test_a_request_reaches_the_provider_it_names() -> None:
    """Loop specification 1.6: one door for all models."""
    registry = LlmRegistry(Bus())
    registry.register(Said("a"))
    registry.register(Said("b"))

    chunks = [chunk async for chunk in registry.stream(request("b"))]

    assert chunks == [TextDelta(0, "b/m"), Finish("stop")]


def test_a_taken_name_is_refused_and_the_earlier_provider_stays() -> None:
    """Loop specification 1.6: all or nothing."""
    registry = LlmRegistry(Bus())
    first = Said("a")
    registry.register(first)

    with pytest.raises(Duplicate, match="'a' is registered already"):
        registry.register(Said("a"))

    assert registry.get("a") is first


def test_a_disposer_undoes_exactly_its_own_registration() -> None:
    """Bus, rule 3, and so everywhere: disposers are idempotent."""
    registry = LlmRegistry(Bus())
    dispose = registry.register(Said("a"))

    dispose()
    second = Said("a")
    registry.register(second)
    dispose()

    assert registry.get("a") is second
    assert (registry.has("a"), registry.has("b")) == (True, False)


@pytest.mark.parametrize(("names", "known"), [((), "none"), (("b", "a"), "a, b")])
def test_an_unknown_provider_is_named_with_those_there_are(names: tuple[str, ...], known: str) -> None:
    """Our promise: an error says what would be right."""
    registry = LlmRegistry(Bus())
    for name in names:
        registry.register(Said(name))

    with pytest.raises(NotFound, match=f"no provider is named 'x'; known: {known}"):
        registry.stream(request("x"))


async def test_whoever_stands_around_the_stream_may_send_it_elsewhere() -> None:
    """Contract 7: `llm/stream` is a waterfall; the model is looked up when the request reaches the core."""
    bus = Bus()
    registry = LlmRegistry(bus)
    registry.register(Said("b"))
    bus.around(STREAM, lambda asked, follow: follow(replace(asked, provider="b")))

    chunks = [chunk async for chunk in registry.stream(request("unknown"))]

    assert chunks[0] == TextDelta(0, "b/m")


async def test_closing_reaches_every_provider_once_whatever_the_others_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Architecture: one provider's trouble is its own."""

    def fail() -> None:
        raise RuntimeError("no")

    def cancel() -> None:
        raise asyncio.CancelledError

    registry = LlmRegistry(Bus())
    providers = [Said("a", fail), Said("b", cancel), Said("c")]
    for provider in providers:
        registry.register(provider)

    with caplog.at_level(logging.WARNING):
        await registry.aclose()
        await registry.aclose()

    assert [provider.closed for provider in providers] == [1, 1, 1]
    assert sorted(caplog.messages) == [
        "provider a did not close: no",
        "provider b did not close: CancelledError",
    ]


async def test_a_provider_that_hangs_cannot_hold_up_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Contract 13: the process is gone 1.5 s after it was told to go."""
    monkeypatch.setattr(registry_module, "CLOSE_GRACE_S", 0.02)
    registry = LlmRegistry(Bus())
    provider = Said("a")
    monkeypatch.setattr(provider, "aclose", anyio.sleep_forever)
    registry.register(provider)

    with anyio.fail_after(1), caplog.at_level(logging.WARNING):
        await registry.aclose()

    assert caplog.messages == ["some providers did not close within 0.02 s"]
