"""What can be wrong with a server before its first session, looked at one thing at a time.

Owns the looking and the words. Each check ends within CHECK_S; none prints, and none shows a key.
"""

import os
import platform
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal

import anyio
from anyio import to_thread

from acp_server.methods.initialize import PROTOCOL_VERSION, own_version
from agent_loop import (
    HarnessError,
    Loaded,
    ProviderError,
    ResolvedModel,
    ask_endpoint,
    find_model,
    find_ripgrep,
    key_missing,
    model_to_use,
    open_credentials,
    open_store,
    sandbox_of,
    sandbox_trouble,
)

CHECK_S: Final = 5.0
# Behind a name that a list has in full: `qwen3` is `qwen3:latest`, an alias stands for the newest date.
_AFTER_NAME: Final = (":", "-", "@")
_SDKS: Final = {
    "openai": "pip install openai",
    "anthropic": "pip install 'acp-agent-server[anthropic]'",
}


@dataclass(frozen=True, slots=True)
class Check:
    """What one look found; `words` also say what to do when it is not ok."""

    name: str
    state: Literal["ok", "warn", "FAIL"]
    words: str


async def checks(loaded: Loaded, environ: Mapping[str, str], *, offline: bool) -> AsyncIterator[Check]:
    """Every check whose ground the earlier ones have not taken away, each when it is done.

    Args:
        offline: Whether to ask no endpoint.
    """
    yield Check(
        "version",
        "ok",
        f"acp-server {own_version()}, ACP {PROTOCOL_VERSION}, Python {platform.python_version()} "
        f"({sys.executable})",
    )
    for check in _settings(loaded):
        yield check
    yield _state_dir(loaded.state_dir)
    yield _ripgrep()
    if loaded.error is not None:
        return
    if (sandbox := sandbox_of(loaded, environ)) is not None:
        trouble = await to_thread.run_sync(sandbox_trouble, sandbox)
        yield Check("sandbox", "ok" if trouble is None else "FAIL", trouble or sandbox.words)
    yield await _store(loaded)
    try:
        found = find_model(loaded.settings, environ, model=await model_to_use(loaded, environ))
    except HarnessError as error:
        yield Check("model", "FAIL", str(error))
        return
    named = loaded.settings.agent.model
    reason = (
        f"from {loaded.origin('agent.model')}" if named else f"as a key for {found.provider_name} is stored"
    )
    yield Check("model", "ok", f"{found.provider_name}/{found.model}, {reason}")
    yield _sdk(found)
    key, check = await _key(found, loaded, environ)
    yield check
    if found.base_url and check.state != "FAIL" and not offline:
        for check in await _endpoint(found, key):
            yield check


def _settings(loaded: Loaded) -> list[Check]:
    if loaded.error is not None:
        return [Check("settings", "FAIL", str(loaded.error))]
    warned = [Check("settings", "warn", words) for words in loaded.warnings]
    here = (
        str(loaded.path) if loaded.path.exists() else f"none, which is fine; they would be in {loaded.path}"
    )
    return warned or [Check("settings", "ok", here)]


def _state_dir(place: Path) -> Check:
    try:
        mode = place.stat().st_mode
        with tempfile.TemporaryFile(dir=place):
            pass
    except FileNotFoundError:
        above = next(folder for folder in place.parents if folder.exists())
        if os.access(above, os.W_OK | os.X_OK):
            return Check("state dir", "ok", f"{place}, which the first session makes")
        return Check(
            "state dir", "FAIL", f"{place} cannot be made: {above} is not writable; choose --state-dir"
        )
    except OSError as error:
        words = f"nothing can be written in {place}: {error.strerror}; mend that, or choose --state-dir"
        return Check("state dir", "FAIL", words)
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return Check("state dir", "warn", f"others can look into {place}: chmod 700 {place}")
    return Check("state dir", "ok", str(place))


def _ripgrep() -> Check:
    path = find_ripgrep()
    if path is None:
        words = "there is none, so a project cannot be searched: pip install 'acp-agent-server[search]'"
        return Check("ripgrep", "warn", words)
    return Check("ripgrep", "ok", path)


async def _store(loaded: Loaded) -> Check:
    try:
        store = open_store(loaded)
        try:
            with anyio.fail_after(CHECK_S):
                await store.list_sessions(cwd=None, cursor=None, limit=1)
        finally:
            await store.aclose()
    except TimeoutError:
        return Check("store", "FAIL", f"it did not answer within {CHECK_S:g} s; is --store right?")
    except HarnessError as error:
        return Check("store", "FAIL", str(error))
    return Check("store", "ok", "sessions can be listed")


def _sdk(found: ResolvedModel) -> Check:
    install = _SDKS.get(found.kind)
    if install is None:
        return Check("client", "ok", f"{found.kind} needs none")
    if find_spec(found.kind) is None:
        return Check("client", "FAIL", f"the package {found.kind} is not installed: {install}")
    return Check("client", "ok", f"the package {found.kind} is installed")


async def _key(found: ResolvedModel, loaded: Loaded, environ: Mapping[str, str]) -> tuple[str | None, Check]:
    place = found.key_place
    if place is None:
        return None, Check("key", "ok", "none is needed")
    if found.api_key is not None:
        in_variable = place.variable is not None and environ.get(place.variable, "").strip()
        source = place.variable if in_variable else loaded.origin(f"providers.{place.provider}.api_key")
        return found.api_key, Check("key", "ok", f"from {source}")
    stored = await open_credentials(loaded).find(place) if place.wanted else None
    if stored is None:
        missing = place.required
        words = str(key_missing(place)) if missing else f"none; {place.origin} is asked without one"
        return None, Check("key", "FAIL" if missing else "ok", words)
    if stored.in_file:
        return stored.key, Check("key", "ok", f"from {stored.where}, a file only you can read")
    return stored.key, Check("key", "ok", f"from {stored.where}")


async def _endpoint(found: ResolvedModel, key: str | None) -> list[Check]:
    try:
        listed = await ask_endpoint(found, CHECK_S, api_key=key)
    except ProviderError as error:
        refused = f"store another: acp-server login {found.provider_name}"
        hint = refused if error.kind == "auth" else "does it run, and is its address right?"
        return [Check("endpoint", "FAIL", f"{error}; {hint}")]
    except HarnessError as error:
        return [Check("endpoint", "FAIL", str(error))]
    if listed is None:
        words = (
            "it answers, but keeps no list of models: whether it takes the key and has the model is unknown"
        )
        return [Check("endpoint", "warn", words)]
    answered = Check("endpoint", "ok", f"{_host(found)} answers{' and takes the key' if key else ''}")
    return [answered, _listed(found.model, listed)]


def _listed(name: str, listed: tuple[str, ...]) -> Check:
    if any(it == name or it.startswith(tuple(name + end for end in _AFTER_NAME)) for it in listed):
        return Check("listed", "ok", f"the endpoint has {name}")
    near = get_close_matches(name, listed) or listed[:3]
    instead = f"; it has {', '.join(near)}" if near else "; it has none at all"
    return Check("listed", "FAIL", f"the endpoint does not list {name}{instead}")


def _host(found: ResolvedModel) -> str:
    return found.key_place.origin if found.key_place is not None else found.base_url
