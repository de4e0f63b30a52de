"""What can be chosen, and what becomes of a choice: the model of each session."""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from agent_loop import model_choice
from agent_loop.agent.registry import AgentHandle
from agent_loop.config.load import load_settings
from agent_loop.errors import ConfigError, ProviderError
from agent_loop.events.facts import SessionModel
from agent_loop.events.moments import ModelsListed
from agent_loop.harness import Harness, open_harness
from agent_loop.llm.providers.openai_compatible import OpenAICompatible
from tests.doubles.provider_server import Reply, provider_server

WAIT_S = 5.0
KEYS = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}

Open = Callable[..., AbstractAsyncContextManager[Harness]]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Opens a harness by these settings and variables."""

    def open_with(toml: str, environ: dict[str, str] | None = None) -> AbstractAsyncContextManager[Harness]:
        state = tmp_path / "state"
        state.mkdir(exist_ok=True)
        (state / "config.toml").write_text(f"format = 1\n{toml}")
        variables = environ or {}
        return open_harness(load_settings(flags={}, environ=variables, state_dir=state), variables)

    return open_with


def model(name: str) -> str:
    return f'[agent]\nmodel = "{name}"\n'


async def session(harness: Harness, tmp_path: Path) -> AgentHandle:
    return await harness.create_session(str(tmp_path))


async def test_the_makers_models_are_known_with_its_key_alone(opened: Open, tmp_path: Path) -> None:
    """Our promise: two keys make two makers to choose from, the current one first."""
    async with opened(model("openai/my-own"), KEYS) as harness:
        handle = await session(harness, tmp_path)
        offered = harness.models.state(handle.agent).offered

        assert offered[0] == "openai/my-own"
        assert "openai/gpt-5" in offered
        assert any(name.startswith("anthropic/claude-") for name in offered)
        assert [name.partition("/")[0] for name in offered] == sorted(
            (name.partition("/")[0] for name in offered), reverse=True
        )
        await handle.dispose()


async def test_who_cannot_be_reached_offers_nothing(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: what is offered works: no key, no package, no script, no offer."""
    monkeypatch.setattr(model_choice, "_has_anthropic", lambda: False)
    keyless = '[providers.other]\nkind = "openai"\napi_key_env = "NOT_SET"\n'
    scripted = '[providers.play]\nkind = "scripted"\n[models."play/x"]\n'
    async with opened(f"{model('openai/x')}{keyless}{scripted}", KEYS) as harness:
        handle = await session(harness, tmp_path)

        providers = {name.partition("/")[0] for name in harness.models.state(handle.agent).offered}

        assert providers == {"openai"}
        await handle.dispose()


async def test_of_a_place_that_is_not_the_makers_nothing_is_known(opened: Open, tmp_path: Path) -> None:
    """Our promise: a local server has what it has, and `gpt-5` is not among it."""
    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    async with opened(model("openai/llama"), environ) as harness:
        handle = await session(harness, tmp_path)

        assert harness.models.state(handle.agent).offered == ("openai/llama",)
        await handle.dispose()


async def test_a_model_that_cannot_be_reached_changes_nothing(opened: Open, tmp_path: Path) -> None:
    """Our promise: a choice holds or it is refused."""
    async with opened(model("demo/tour")) as harness:
        handle = await session(harness, tmp_path)
        before = handle.agent.options

        with pytest.raises(ConfigError):
            harness.models.choose(handle.agent, "nowhere/x")

        assert handle.agent.options is before
        assert not any(isinstance(fact, SessionModel) for fact in handle.agent.session.log)
        await handle.dispose()


async def test_what_the_endpoint_lists_is_offered_without_what_answers_nobody(
    opened: Open, tmp_path: Path
) -> None:
    """Issue "Real models": live listing, in the background, behind the first session."""
    body = b'{"data": [{"id": "llama-4"}, {"id": "nomic-embed-text"}, {"id": "whisper-1"}]}'
    async with provider_server() as server:
        server.listing = Reply(body=body)
        environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.base_url}"}
        async with opened(model("openai/mine"), environ) as harness:
            handle, listed = await session(harness, tmp_path), anyio.Event()
            harness.bus.on(ModelsListed, lambda _: listed.set())

            harness.warm_up()
            with anyio.fail_after(WAIT_S):
                await listed.wait()

            assert harness.models.state(handle.agent).offered == ("openai/mine", "openai/llama-4")
            await handle.dispose()


@pytest.mark.parametrize("answer", [ProviderError("server", "down"), ()])
async def test_an_endpoint_that_lists_nothing_leaves_what_is_known(
    opened: Open,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: object,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Our promise: a list is a convenience; without it the session works as before."""

    async def load(self: OpenAICompatible) -> None:
        return None

    async def models(self: OpenAICompatible) -> object:
        if isinstance(answer, ProviderError):
            raise answer
        return answer

    monkeypatch.setattr(OpenAICompatible, "load", load)
    monkeypatch.setattr(OpenAICompatible, "models", models)
    async with opened(model("openai/x"), KEYS) as harness:
        handle = await session(harness, tmp_path)
        heard: list[ModelsListed] = []
        harness.bus.on(ModelsListed, heard.append)

        with caplog.at_level(logging.INFO):
            await harness.models.load("openai/x")

        assert heard == []
        assert ("openai did not say which models it has: down" in caplog.text) == bool(answer)
        await handle.dispose()


async def test_a_configured_agent_whose_chosen_model_is_gone_says_so_in_the_log(
    opened: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Our promise: it goes on with the settings' model."""
    old = '[providers.old]\nkind = "demo"\n'
    async with opened(model("demo/tour") + old) as harness:
        handle = await session(harness, tmp_path)
        harness.models.choose(handle.agent, "old/tour")
        await handle.dispose()

    entry = f'[[agents]]\nid = "again"\nresume_session_id = "{handle.agent.id}"\n'
    async with opened(model("demo/tour") + entry) as harness:
        with caplog.at_level(logging.WARNING):
            [resumed] = await harness.start_configured()

        assert resumed.agent.options.model == "demo/tour"
        assert "the configured agent again: This session's model old/tour is not there" in caplog.text
        await resumed.dispose()
