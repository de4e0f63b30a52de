"""`acp-server login` and `logout`: a key for a provider, stored and forgotten. Editors run these, too.

Exit statuses: 0 only if the key is stored, or none is left; 1 it could not be; 130 interrupted. A running
server finds the key with its next session, or the next prompt after the old key was refused.
"""

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from getpass import getpass
from typing import Final

import anyio

from acp_server.inert import one_line
from agent_loop import (
    HarnessError,
    KeyPlace,
    Loaded,
    ProviderError,
    ResolvedModel,
    ask_endpoint,
    find_provider,
    open_credentials,
    providers_of,
)

CHECK_S: Final = 10.0


def login(arguments: argparse.Namespace, loaded: Loaded, environ: Mapping[str, str]) -> int:
    """Read a key, try it, and store it; the exit status."""
    try:
        if loaded.error is not None:
            raise loaded.error
        provider, place = _provider(arguments.provider or _asked(loaded, environ), loaded, environ)
        key = _key(place.provider, from_stdin=arguments.with_key_from_stdin)
        if not arguments.no_check:
            _check(provider, key)
        kept = open_credentials(loaded).keep(place, key)
    except HarnessError as error:
        return _fail(str(error))
    except (KeyboardInterrupt, EOFError):
        return _fail("Nothing was stored.", 130)

    print(f"The key for {place.provider} is stored in {kept.where}.")
    if kept.in_file:
        print("There is no system keyring here: whoever may read your files can read it.")
    if place.variable and environ.get(place.variable):
        print(f"Where {place.variable} is set, as it is here, that key is used instead.")
    return 0


def logout(arguments: argparse.Namespace, loaded: Loaded, _: Mapping[str, str]) -> int:
    """Forget the key of one provider, or of all; the exit status."""
    names = [arguments.provider] if arguments.provider else providers_of(loaded.settings)
    try:
        forgotten = open_credentials(loaded).forget(names)
    except HarnessError as error:
        return _fail(str(error))

    for name, where in forgotten:
        print(f"The key for {name} is gone from {where}.")
    if not forgotten:
        print("No key was stored.")
    return 0


def _asked(loaded: Loaded, environ: Mapping[str, str]) -> str:
    """The provider a person names; the one of the chosen model when they just press Enter."""
    names = [name for name in providers_of(loaded.settings) if _wants_key(name, loaded, environ)]
    usual = (loaded.settings.agent.model or "openai").partition("/")[0]
    hint = f" [{usual}]" if usual in names else ""
    return input(f"Which provider: {', '.join(names)}{hint}? ").strip() or usual


def _wants_key(name: str, loaded: Loaded, environ: Mapping[str, str]) -> bool:
    place = find_provider(loaded.settings, environ, name).key_place
    return place is not None and place.wanted


def _provider(name: str, loaded: Loaded, environ: Mapping[str, str]) -> tuple[ResolvedModel, KeyPlace]:
    """Raises HarnessError for a provider that takes no key."""
    found = find_provider(loaded.settings, environ, name)
    place = found.key_place
    if place is None:
        raise HarnessError(f"The provider {name} takes no key.")
    if not place.wanted:
        raise HarnessError(
            f"The provider {name} is on this machine ({place.origin}) and is asked without a key. If it "
            f"wants one all the same, name a variable for it in the settings: [providers.{name}] api_key_env"
        )
    return found, place


def _key(provider: str, *, from_stdin: bool) -> str:
    text = sys.stdin.readline() if from_stdin else getpass(f"Key for {provider} (it is not shown): ")
    if not text.strip():
        raise HarnessError("No key was given; nothing was stored.")
    return text.strip()


def _check(provider: ResolvedModel, key: str) -> None:
    """Raises HarnessError when the endpoint refuses the key, or cannot be asked."""
    try:
        anyio.run(partial(ask_endpoint, provider, CHECK_S, api_key=key))
    except ProviderError as error:
        raise HarnessError(f"{error}. Nothing was stored; --no-check stores it all the same.") from error


def _fail(words: str, status: int = 1) -> int:
    sys.stderr.write(f"{one_line(words)}\n")
    return status
