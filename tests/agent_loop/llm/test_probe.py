"""Asking an endpoint which models it has, over real HTTP."""

import json
from typing import Any

import anyio
import pytest

from agent_loop.errors import ProviderError
from agent_loop.llm.probe import list_models
from agent_loop.llm.providers.endpoint import endpoint_at
from tests.doubles.provider_server import ProviderServer, Reply, closed_port, provider_server

WAIT_S = 5.0


async def ask(server: ProviderServer, kind: Any = "openai", key: str | None = "k") -> Any:
    return await list_models(endpoint_at("it", server.base_url, key, WAIT_S), kind, WAIT_S)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"data": [{"id": "b"}, {"id": "a"}, {"id": 5}, "c"]}, ("b", "a")),
        ({"object": "list", "data": None}, ()),  # Ollama without a model
        ({"models": []}, None),
        ("html", None),
    ],
)
async def test_the_names_come_in_the_endpoints_order(body: Any, names: Any) -> None:
    """Issue: one cheap question, whatever is answered."""
    async with provider_server() as server:
        server.listing = Reply(body=json.dumps(body).encode())

        assert await ask(server) == names


@pytest.mark.parametrize(
    ("kind", "key", "path", "sent"),
    [
        ("openai", "k", "/v1/models", {"authorization": "Bearer k"}),
        ("openai", None, "/v1/models", {}),
        ("anthropic", "k", "/v1/models?limit=1000", {"x-api-key": "k"}),
        ("anthropic", None, "/v1/models?limit=1000", {}),
    ],
)
async def test_each_format_is_asked_its_own_way(
    kind: str, key: str | None, path: str, sent: dict[str, str]
) -> None:
    """The makers' references for their lists of models."""
    async with provider_server() as server:
        server.listing = Reply(body=b'{"data": []}')

        await ask(server, kind, key)

        [request] = server.questions
        proof = {
            name: value for name, value in request.headers.items() if name in ("authorization", "x-api-key")
        }
        assert (request.path, proof) == (path, sent)


async def test_a_refused_key_is_said_and_a_missing_list_is_none() -> None:
    """Issue: is the key accepted?"""
    async with provider_server() as server:
        server.listing = Reply(status=401, body=b'{"error": {"message": "no such key"}}')
        with pytest.raises(ProviderError, match=r"it refused the key \(401\): no such key") as caught:
            await ask(server)

        server.listing = Reply(status=404, body=b"not here")
        assert await ask(server) is None
        assert caught.value.kind == "auth"


async def test_an_endpoint_that_is_silent_or_away_is_not_waited_for() -> None:
    """Issue: bounded."""
    away = endpoint_at("it", f"http://127.0.0.1:{closed_port()}/v1", None, WAIT_S)
    async with provider_server() as server:
        server.listing = Reply(silent_after=0)
        silent = endpoint_at("it", server.base_url, None, WAIT_S)

        with anyio.fail_after(WAIT_S):
            with pytest.raises(ProviderError) as timed_out:
                await list_models(silent, "openai", 0.1)
            with pytest.raises(ProviderError, match="no connection"):
                await list_models(away, "openai", WAIT_S)

    assert timed_out.value.kind == "timeout"
