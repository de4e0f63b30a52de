"""From the model that settings name to what runs: its provider, and what is known of it.

Owns which class stands for which kind of provider, and how an endpoint is asked before anything runs. Which
model is meant belongs to `config.resolve`.
"""

from collections.abc import Mapping
from typing import Final, assert_never

from agent_loop.config.resolve import OLLAMA, ResolvedModel, find_provider
from agent_loop.config.settings import ModelSettings, Settings
from agent_loop.errors import ConfigError, ProviderError
from agent_loop.llm.models import ModelInfo, Price
from agent_loop.llm.provider import Provider
from agent_loop.record import replace

OLLAMA_S: Final = 0.3
"""Longest wait for a server on this machine to name its models."""


def provider_of(model: ResolvedModel) -> Provider:
    """The provider that reaches it, nothing loaded or opened yet.

    Raises:
        ConfigError: Its settings lack something.
    """
    # Imported by kind: an editor waits for the server, and only one of these will be used.
    match model.kind:
        case "openai":
            from agent_loop.llm.providers.openai_compatible import OpenAICompatible

            return OpenAICompatible(model.provider_name, model.base_url, model.api_key, model.idle_timeout_s)
        case "anthropic":
            from agent_loop.llm.providers.anthropic_messages import Anthropic

            return Anthropic(
                model.provider_name,
                model.base_url,
                model.api_key,
                model.idle_timeout_s,
                max_tokens=model.max_tokens,
                thinking=model.thinking,
            )
        case "scripted":
            from agent_loop.llm.providers.scripted import Scripted

            if model.script is None:
                where = f"providers.{model.provider_name}.script"
                raise ConfigError(f"the provider {model.provider_name} needs a script", path=where)
            return Scripted(model.provider_name, model.script, model.control)
        case "demo":
            from agent_loop.llm.providers.demo import Demo

            return Demo(model.provider_name)
        case _:
            assert_never(model.kind)


async def ask_endpoint(
    model: ResolvedModel, timeout_s: float, *, api_key: str | None = None
) -> tuple[str, ...] | None:
    """The models the endpoint of `model` names, if it keeps a list.

    Args:
        api_key: Sent in place of the model's own.
    Raises:
        ProviderError: It cannot be reached in time, or refuses the key.
        ConfigError: The address or the key cannot be one.
    """
    # These bring the room of the providers, which nobody waits for at a start.
    from agent_loop.llm.probe import list_models
    from agent_loop.llm.providers.endpoint import endpoint_at

    endpoint = endpoint_at(model.provider_name, model.base_url, api_key or model.api_key, timeout_s)
    return await list_models(endpoint, "anthropic" if model.kind == "anthropic" else "openai", timeout_s)


async def first_local_model(settings: Settings, environ: Mapping[str, str]) -> str:
    """PROVIDER/NAME of the first model that an Ollama has, on this machine or where OLLAMA_HOST says.

    Raises:
        ConfigError: With `needs_auth` when none answers within OLLAMA_S, or it has no model.
    """
    found = find_provider(settings, environ, OLLAMA)
    try:
        models = await ask_endpoint(found, OLLAMA_S)
    except ProviderError as error:
        raise ConfigError(
            f"No Ollama answers at {found.base_url}. Start it, or set OLLAMA_HOST to where it runs.",
            path="OLLAMA_HOST",
            needs_auth=True,
        ) from error
    if not models:
        raise ConfigError(
            f"Ollama at {found.base_url} has no model yet: ollama pull qwen3",
            path="OLLAMA_HOST",
            needs_auth=True,
        )
    return f"{OLLAMA}/{models[0]}"


def info_of(model: ResolvedModel, wanted: ModelSettings | None) -> ModelInfo:
    """What is known of a model; the person knows best, and prices are only known of the maker's own."""
    # Imported with the first session: nobody waits for the table at a start.
    from agent_loop.llm.catalogue import known_model

    known = known_model(model.model)
    if not model.from_maker:
        known = replace(known, price=None)
    if wanted is None:
        return known
    price = known.price
    if wanted.input_price is not None and wanted.output_price is not None:
        read, write = wanted.cache_read_price, wanted.cache_write_price
        price = Price(
            wanted.input_price,
            wanted.output_price,
            wanted.input_price if read is None else read,
            wanted.input_price if write is None else write,
            wanted.currency,
        )
    return replace(
        known,
        context_window=wanted.context_window or known.context_window,
        max_output=wanted.max_output or known.max_output,
        images=known.images if wanted.images is None else wanted.images,
        reasoning=known.reasoning if wanted.reasoning is None else wanted.reasoning,
        tools=known.tools if wanted.tools is None else wanted.tools,
        price=price,
    )
