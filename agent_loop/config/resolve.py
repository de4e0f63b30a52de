"""Finds the model that settings name: its provider, its endpoint, and where its key may stand.

Owns when a model needs a key, and the words for a person who has none. Here a key comes from the environment
or the settings; what a person has stored belongs to `credentials`, making the provider to whoever runs it.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal
from urllib.parse import urlsplit

from agent_loop.config.settings import ProviderKind, ProviderSettings, Settings
from agent_loop.errors import ConfigError
from agent_loop.record import record, replace

MODEL_FLAG: Final = "--model"
OLLAMA: Final = "ollama"
"""A provider there is without a table, too: whoever runs Ollama need not look up its address."""
_OLLAMA_PORT: Final = 11434


@record
class _Place:
    """The place a kind of provider is known for, the variables everybody's tools read, and a model there."""

    base_url: str
    base_url_variable: str
    key_variable: str
    first_model: str


_PLACES: Final[Mapping[ProviderKind, _Place]] = {
    "openai": _Place("https://api.openai.com/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY", "gpt-5"),
    "anthropic": _Place(
        "https://api.anthropic.com", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "claude-sonnet-5-5"
    ),
}
"""Kinds with an endpoint; the others have none, and no key."""

MAKERS: Final[Mapping[str, str]] = {kind: f"{kind}/{place.first_model}" for kind, place in _PLACES.items()}
"""Providers somebody without any settings can sign in to, and the model that is used then."""


@record
class KeyPlace:
    """Whose key is looked for, where, and where it may be sent.

    Attributes:
        provider: Its name in the settings, and in whatever keeps keys.
        variable: The environment variable that holds it; None when no variable is for this endpoint.
        origin: Scheme, host and port of the endpoint: a stored key for another one is not sent there.
        wanted: Whether it is worth asking whatever keeps keys for it.
        required: Whether there is no use in asking the endpoint without it.
    """

    provider: str
    variable: str | None
    origin: str
    wanted: bool
    required: bool


@record
class ResolvedModel:
    """A model, and all it takes to reach it.

    Attributes:
        model: The provider's own name for it, slashes and all; empty for a provider alone.
        base_url: Empty for kinds without an endpoint.
        api_key: None for an endpoint that needs none, or whose key is not found yet; never shown.
        max_tokens, thinking: As `ProviderSettings` has them.
        from_maker: Whether the endpoint is the one its kind is known for, whose prices are known.
        key_place: None for kinds without an endpoint.
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
    key_place: KeyPlace | None = None


def resolve_model(
    settings: Settings, environ: Mapping[str, str], *, model: str | None = None
) -> ResolvedModel:
    """The model of `settings`, or `model` in its place, with the key it cannot do without.

    Raises:
        ConfigError: See `find_model`; with `needs_auth` also when its key is missing.
    """
    found = find_model(settings, environ, model=model)
    if found.api_key is None and found.key_place is not None and found.key_place.required:
        raise key_missing(found.key_place)
    return found


def find_model(settings: Settings, environ: Mapping[str, str], *, model: str | None = None) -> ResolvedModel:
    """The model of `settings`, or `model` in its place, whether or not there is a key for it.

    Raises:
        ConfigError: With `needs_auth` when no model is chosen; without when the name leads nowhere.
    """
    named = model or settings.agent.model
    if not named:
        keys = " and ".join(f"{place.key_variable} for {kind}" for kind, place in _PLACES.items())
        raise ConfigError(
            f"No model is chosen. Start the server with {MODEL_FLAG} PROVIDER/NAME, or set agent.model in "
            f"its settings file; a key is read from the environment, {keys}, or stored by: acp-server login",
            path=MODEL_FLAG,
            needs_auth=True,
        )

    provider_name, _, model_name = named.partition("/")
    if not provider_name or not model_name:
        raise ConfigError(f"A model is named PROVIDER/NAME, not {named!r}.", path=MODEL_FLAG)

    if provider_name not in providers_of(settings):
        raise _unknown(f"{provider_name!r} for the model {named!r}", settings)
    return replace(find_provider(settings, environ, provider_name), model=model_name)


def find_provider(settings: Settings, environ: Mapping[str, str], name: str) -> ResolvedModel:
    """A provider alone, its model empty.

    Raises:
        ConfigError: There is none of that name.
    """
    provider = settings.providers.get(name)
    if provider is None and name == OLLAMA:
        provider = ProviderSettings(kind="openai", base_url=ollama_url(environ))
    if provider is None:
        raise _unknown(repr(name), settings)

    base_url, api_key, key_place = "", None, None
    place = _PLACES.get(provider.kind)
    if place is not None:
        base_url = _base_url(name, provider, place, environ)
        key_place = _key_place(name, provider, place, base_url)
        api_key = _api_key(provider, key_place, environ)
    return ResolvedModel(
        name,
        provider.kind,
        "",
        base_url,
        api_key,
        provider.idle_timeout_s,
        provider.script,
        provider.control,
        provider.max_tokens,
        provider.thinking,
        from_maker=place is not None and base_url == place.base_url,
        key_place=key_place,
    )


def providers_of(settings: Settings) -> list[str]:
    """The names of all providers, with and without a table."""
    return sorted({*settings.providers, OLLAMA})


def key_missing(place: KeyPlace) -> ConfigError:
    """What a person without a key is told."""
    login = f"acp-server login {place.provider}"
    if place.variable is None:
        return ConfigError(f"The provider {place.provider} needs a key: {login}", needs_auth=True)
    return ConfigError(
        f"The provider {place.provider} needs a key: set {place.variable} in the environment of the server, "
        f"or store one with: {login}",
        path=place.variable,
        needs_auth=True,
    )


def ollama_url(environ: Mapping[str, str]) -> str:
    """Where Ollama's OpenAI-compatible side answers, by OLLAMA_HOST as Ollama itself reads it."""
    said = environ.get("OLLAMA_HOST", "").strip()
    scheme, _, place = said.rpartition("://")
    address = urlsplit(f"{scheme or 'http'}://{place}")
    try:
        host, port = address.hostname or "127.0.0.1", address.port
    except ValueError:
        host, port = "127.0.0.1", None
    # What a server listens on everywhere is no address to call.
    if host in ("0.0.0.0", "::"):
        host = "127.0.0.1"
    if port is None:
        port = {"http": 80, "https": 443}.get(scheme, _OLLAMA_PORT)
    return f"{address.scheme}://{f'[{host}]' if ':' in host else host}:{port}/v1"


def _unknown(what: str, settings: Settings) -> ConfigError:
    known = ", ".join(providers_of(settings))
    return ConfigError(f"There is no provider {what}; there are {known}.", path=MODEL_FLAG)


def _base_url(name: str, provider: ProviderSettings, place: _Place, environ: Mapping[str, str]) -> str:
    if provider.base_url is not None:
        return provider.base_url
    # Only the built-in provider: a provider somebody named means the place its kind is known for.
    if name == provider.kind:
        return environ.get(place.base_url_variable) or place.base_url
    return place.base_url


def _key_place(name: str, provider: ProviderSettings, place: _Place, base_url: str) -> KeyPlace:
    variable = provider.api_key_env
    # OpenAI's key goes to OpenAI, or wherever the person sent that provider; nobody else gets it.
    if variable is None and (name == provider.kind or base_url == place.base_url):
        variable = place.key_variable

    elsewhere = not _is_loopback(base_url)
    return KeyPlace(
        name,
        variable,
        origin_of(base_url),
        # On this machine most servers take none; one that does has its variable in the settings.
        wanted=elsewhere or provider.api_key_env is not None,
        required=elsewhere and variable is not None,
    )


def _api_key(provider: ProviderSettings, place: KeyPlace, environ: Mapping[str, str]) -> str | None:
    in_environment = environ.get(place.variable, "").strip() if place.variable else ""
    return in_environment or (provider.api_key or "").strip() or None


def origin_of(url: str) -> str:
    """Scheme, host and port of an address, without the user and password it may carry."""
    try:
        address = urlsplit(url)
    except ValueError:
        return url
    return f"{address.scheme}://{address.netloc.rpartition('@')[2]}".lower()


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or host.endswith(".localhost") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
