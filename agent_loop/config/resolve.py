"""Finds the model that settings name: its provider, its endpoint and its key.

Owns when a model needs a key, and the words for a person who has none. Keys come from the environment
alone; making the provider belongs to whoever runs it.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal
from urllib.parse import urlsplit

from agent_loop.config.settings import ProviderKind, ProviderSettings, Settings
from agent_loop.errors import ConfigError
from agent_loop.record import record

_MODEL_FLAG: Final = "--model"


@record
class _Place:
    """The place a kind of provider is known for, and the variables everybody's tools read."""

    base_url: str
    base_url_variable: str
    key_variable: str


_PLACES: Final[Mapping[ProviderKind, _Place]] = {
    "openai": _Place("https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    "anthropic": _Place("https://api.anthropic.com", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
}
"""Kinds with an endpoint; the others have none, and no key."""


@record
class ResolvedModel:
    """A model, and all it takes to reach it.

    Attributes:
        model: The provider's own name for it, slashes and all.
        base_url: Empty for kinds without an endpoint.
        api_key: None for an endpoint that needs none; never shown.
        max_tokens, thinking: As `ProviderSettings` has them.
        from_maker: Whether the endpoint is the one its kind is known for, whose prices are known.
    """

    provider_name: str
    kind: ProviderKind
    model: str
    base_url: str
    api_key: str | None = field(repr=False)
    idle_timeout_s: float
    script: str | None
    control: str | None
    max_tokens: int | None = None
    thinking: Literal["adaptive"] | int | None = None
    from_maker: bool = False


def resolve_model(
    settings: Settings, environ: Mapping[str, str], *, model: str | None = None
) -> ResolvedModel:
    """The model of `settings`, or `model` in its place.

    Raises:
        ConfigError: With `needs_auth` when no model is chosen or its key is missing; without when the
            name leads nowhere.
    """
    named = model or settings.agent.model
    if not named:
        keys = " and ".join(f"{place.key_variable} for {kind}" for kind, place in _PLACES.items())
        raise ConfigError(
            f"No model is chosen. Start the server with {_MODEL_FLAG} PROVIDER/NAME, or set agent.model in "
            f"its settings file; a key is read from the environment, {keys}.",
            path=_MODEL_FLAG,
            needs_auth=True,
        )

    provider_name, _, model_name = named.partition("/")
    if not provider_name or not model_name:
        raise ConfigError(f"A model is named PROVIDER/NAME, not {named!r}.", path=_MODEL_FLAG)

    provider = settings.providers.get(provider_name)
    if provider is None:
        known = ", ".join(sorted(settings.providers))
        raise ConfigError(
            f"There is no provider {provider_name!r} for the model {named!r}; there are {known}.",
            path=_MODEL_FLAG,
        )

    base_url, api_key = "", None
    place = _PLACES.get(provider.kind)
    if place is not None:
        base_url = _base_url(provider_name, provider, place, environ)
        api_key = _api_key(provider_name, provider, place, base_url, environ)
    return ResolvedModel(
        provider_name,
        provider.kind,
        model_name,
        base_url,
        api_key,
        provider.idle_timeout_s,
        provider.script,
        provider.control,
        provider.max_tokens,
        provider.thinking,
        from_maker=place is not None and base_url == place.base_url,
    )


def _base_url(name: str, provider: ProviderSettings, place: _Place, environ: Mapping[str, str]) -> str:
    if provider.base_url is not None:
        return provider.base_url
    # Only the built-in provider: a provider somebody named means the place its kind is known for.
    if name == provider.kind:
        return environ.get(place.base_url_variable) or place.base_url
    return place.base_url


def _api_key(
    name: str, provider: ProviderSettings, place: _Place, base_url: str, environ: Mapping[str, str]
) -> str | None:
    variable = provider.api_key_env
    if variable is None:
        # OpenAI's key goes to OpenAI, or wherever the person sent that provider; nobody else gets it.
        if name != provider.kind and base_url != place.base_url:
            return None
        variable = place.key_variable

    key = environ.get(variable, "").strip()
    if not key and not _is_loopback(base_url):
        raise ConfigError(
            f"The provider {name} needs a key: set {variable} in the environment of the server.",
            path=variable,
            needs_auth=True,
        )
    return key or None


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
