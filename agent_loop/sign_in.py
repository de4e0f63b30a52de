"""Signing in and out: what a person can do who has no key, and which model is used once it was done.

Owns the ways that are offered, checking one, and forgetting. Where keys are kept belongs to
`config.credentials`, what a model needs to `config.resolve`, running it to the harness.

1. Nothing is looked up for the question which ways there are: an editor asks it before everything else.
2. After `sign_out` only a key that was stored since counts, or a way that was chosen since: what the
   environment holds cannot be forgotten, and must not make the next session as if nothing had been said.
"""

from collections.abc import Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Final

import anyio
from anyio import to_thread

from agent_loop.chosen_model import first_local_model
from agent_loop.config.load import Loaded
from agent_loop.config.resolve import (
    MAKERS,
    MODEL_FLAG,
    OLLAMA,
    KeyPlace,
    ResolvedModel,
    find_model,
    find_provider,
    key_missing,
    providers_of,
)
from agent_loop.errors import ConfigError, HarnessError, NotFound
from agent_loop.record import record, replace

if TYPE_CHECKING:
    from agent_loop.config.credentials import Credentials

FORGET_S: Final = 5.0


@record
class Way:
    """One way to sign in.

    Attributes:
        id: What `choose` takes.
        provider: The one whose models are used then.
        variable: Where its key may stand in the environment; None when no variable is for it.
    """

    id: str
    provider: str
    variable: str | None = None
    needs_key: bool = True


class SignIn:
    """Who is signed in to what, for all sessions of one server."""

    def __init__(self, loaded: Loaded, environ: Mapping[str, str], keys: "Credentials | None" = None) -> None:
        self._loaded = loaded
        self._environ = environ
        self._given = keys
        # PROVIDER/NAME from a way that was chosen, in place of what the settings name.
        self._chosen: str | None = None
        self._signed_out = False
        # Stored keys that were found, by provider, for those who cannot wait.
        self._found: dict[str, str] = {}

    @cached_property
    def _keys(self) -> "Credentials":
        # Most keys stand in the environment, and everybody waits for the start.
        return self._given or open_credentials(self._loaded)

    def ways(self) -> tuple[Way, ...]:
        """The ways there are, by the model the settings name; none when it can be used without a key."""
        if self._loaded.error is not None:
            return ()
        settings = self._loaded.settings
        if not settings.agent.model:
            places = [find_provider(settings, self._environ, maker).key_place for maker in MAKERS]
        else:
            try:
                places = [find_model(settings, self._environ).key_place]
            except ConfigError:
                return ()
        with_key = [
            Way(f"{place.provider}-key", place.provider, place.variable)
            for place in places
            if place is not None and place.wanted
        ]
        return (*with_key, Way(OLLAMA, OLLAMA, needs_key=False)) if with_key else ()

    async def resolve(self, model: str | None = None) -> ResolvedModel:
        """The model to use, `model` if it is given, with its key.

        Raises:
            ConfigError: With `needs_auth` when a person has to sign in first, or to choose a model.
        """
        named = model or self._chosen or self._loaded.settings.agent.model or await self.signed_in_to()
        found = find_model(self._loaded.settings, self._environ, model=named)
        place = found.key_place
        if place is None or not place.wanted:
            return found
        if found.api_key is not None and not self._signed_out:
            return found

        stored = await self._stored(place)
        if stored is not None:
            self._signed_out = False
            return replace(found, api_key=found.api_key or stored)
        if self._signed_out:
            raise _signed_out(place)
        if place.required:
            raise key_missing(place)
        return found

    def known(self, model: str, *, needs_key: bool) -> ResolvedModel:
        """That model with the key there is for it by now, for those who cannot wait for a look.

        Args:
            needs_key: False for a provider that has its key already.
        Raises:
            ConfigError: The name leads nowhere, or a key that is needed is not known.
        """
        found = find_model(self._loaded.settings, self._environ, model=model)
        place = found.key_place
        if place is None or not place.wanted or not needs_key:
            return found
        key = self._found.get(place.provider) or (None if self._signed_out else found.api_key)
        if key is None and self._signed_out:
            raise _signed_out(place)
        if key is None and place.required:
            raise key_missing(place)
        return replace(found, api_key=found.api_key or key)

    async def look(self, model: str) -> None:
        """Make a key that is stored for this model's provider `known`; a bounded look, which never raises."""
        try:
            found = find_model(self._loaded.settings, self._environ, model=model)
        except ConfigError:
            return
        if found.api_key is None and found.key_place is not None and found.key_place.wanted:
            await self._stored(found.key_place)

    async def look_around(self) -> None:
        """Make the stored keys of all providers `known`, so that their models can be chosen.

        Only for a person whose stored key is in use: everybody else's keyring would ask to be unlocked for
        models that perhaps nobody wants.
        """
        if not self._found:
            return
        for provider in providers_of(self._loaded.settings):
            await self.look(f"{provider}/any")

    async def choose(self, way_id: str) -> None:
        """Sign in one of the `ways`: a key must be there by now, or a server that needs none must answer.

        Raises:
            NotFound: There is no such way.
            ConfigError: With `needs_auth` when it does not lead there yet; the message says what to do.
        """
        way = next((way for way in self.ways() if way.id == way_id), None)
        if way is None:
            raise NotFound(f"there is no way to sign in called {way_id!r}")
        if not way.needs_key:
            self._chosen = await first_local_model(self._loaded.settings, self._environ)
        else:
            await self._require_key(way.provider)
            self._chosen = None if self._loaded.settings.agent.model else MAKERS[way.provider]
        self._signed_out = False

    async def sign_out(self) -> None:
        """Forget every stored key. Sessions that are open keep theirs until they are closed.

        Raises:
            HarnessError: One could not be forgotten, or not within FORGET_S.
        """
        self._chosen, self._signed_out = None, True
        self._found.clear()
        providers = providers_of(self._loaded.settings)
        with anyio.move_on_after(FORGET_S) as scope:
            await to_thread.run_sync(partial(self._keys.forget, providers), abandon_on_cancel=True)
        if scope.cancelled_caught:
            raise HarnessError(
                f"The system's keyring did not answer within {FORGET_S:g} s; its keys may still be there.",
                code="VAULT",
            )

    async def newer_key(self, provider: str, refused: str | None) -> str | None:
        """A key stored since the endpoint refused that one; None when there is none."""
        found = find_provider(self._loaded.settings, self._environ, provider)
        if found.key_place is None or found.api_key is not None:
            return None
        stored = await self._stored(found.key_place)
        return None if stored == refused else stored

    async def _stored(self, place: KeyPlace) -> str | None:
        kept = await self._keys.find(place)
        if kept is None:
            self._found.pop(place.provider, None)
            return None
        self._found[place.provider] = kept.key
        return kept.key

    async def signed_in_to(self) -> str | None:
        """Without a chosen model, one of the first maker whose key was stored on purpose."""
        for maker, model in MAKERS.items():
            place = find_provider(self._loaded.settings, self._environ, maker).key_place
            if place is not None and await self._stored(place):
                return model
        return None

    async def _require_key(self, provider: str) -> None:
        found = find_provider(self._loaded.settings, self._environ, provider)
        place = found.key_place
        if place is not None and found.api_key is None and not await self._stored(place):
            raise key_missing(place)


async def model_to_use(loaded: Loaded, environ: Mapping[str, str]) -> str | None:
    """PROVIDER/NAME of a new session: what the settings name, or one of a maker somebody is signed in to."""
    return loaded.settings.agent.model or await SignIn(loaded, environ).signed_in_to()


def open_credentials(loaded: Loaded) -> "Credentials":
    """The stored keys of whoever these settings belong to; nothing is read before it is asked."""
    from agent_loop.config.credentials import Credentials

    return Credentials(loaded.state_dir)


def _signed_out(place: KeyPlace) -> ConfigError:
    return ConfigError(
        f"You have signed out. Sign in again to use {place.provider}, or choose another model with "
        f"{MODEL_FLAG}.",
        path=place.variable or MODEL_FLAG,
        needs_auth=True,
    )
