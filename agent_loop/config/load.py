"""Brings settings together: flags over environment over the person's file over defaults.

1. Nothing below a workspace is read: a cloned repository must not choose an address or full-auto.
2. A wrong value or file never raises here. It waits in `Loaded.error`, so that the editor's first
   question is answered and the person reads the reason when a session is asked for.
3. Words are ours, never a library's, and never show what stands under `providers` or `store`: it may be
   a key, or hold a password.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from agent_loop.config.settings import (
    BUILT_IN_PROVIDERS,
    REQUIRED_WORDS,
    AgentEntry,
    AgentSettings,
    FetchSettings,
    ModelSettings,
    PermissionSettings,
    ProviderSettings,
    RetrySettings,
    RuleSettings,
    SandboxSettings,
    Settings,
    StoreSettings,
)
from agent_loop.config.toml_file import Key, TomlFile, dotted, read_toml
from agent_loop.errors import ConfigError
from agent_loop.messages import Json
from agent_loop.record import record

FILE_NAME: Final = "config.toml"
DEFAULT: Final = "default"
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
DEFAULT_LOG_LEVEL: Final = "info"

# Each flag, and the name of what it sets.
_FLAGS: Final = {
    "model": "agent.model",
    "permission_mode": "agent.permission_mode",
    "sandbox": "agent.sandbox",
    "store": "store.url",
    "config": "config",
    "log_level": "log_level",
    "trace": "trace",
}
# Tables that hold, or may hold, a key or a password.
_SECRET: Final = ("providers", "store")
_LONGEST_SHOWN_CHARS: Final = 40


_AnyTable = (
    Settings
    | AgentSettings
    | ProviderSettings
    | AgentEntry
    | StoreSettings
    | FetchSettings
    | SandboxSettings
    | PermissionSettings
    | RetrySettings
    | ModelSettings
)


class _Given(NamedTuple):
    """A value from a flag or a variable, and the flag or variable as the person spelled it."""

    value: str
    origin: str


@record
class Loaded:
    """Settings, and what is to be said about them.

    Attributes:
        settings: All defaults when there is an error.
        state_dir: Where sessions and logs are kept.
        log_level: One of `LOG_LEVELS`.
        trace: File to write both directions to, or None.
        warnings: Sentences for a person: keys nobody reads, and a secret everybody can.
        error: Why no session can be made with these settings; None when one can.
    """

    settings: Settings
    state_dir: Path
    log_level: str
    trace: Path | None
    warnings: tuple[str, ...]
    error: ConfigError | None
    _file: TomlFile
    _given: Mapping[str, _Given]

    @property
    def path(self) -> Path:
        """The person's file, there or not."""
        return self._file.path

    def origin(self, name: str) -> str:
        """Where `agent.model`, `log_level` … comes from: a flag, a variable, `path:line` or `default`."""
        if name in self._given:
            return self._given[name].origin
        line = self._file.lines_by_name.get(name)
        return DEFAULT if line is None else f"{self.path}:{line}"


def state_dir(environ: Mapping[str, str], flag: str | None = None) -> Path:
    """Where sessions, settings and logs are kept: the flag, ACP_SERVER_HOME, or the system's place."""
    chosen = flag or environ.get("ACP_SERVER_HOME")
    if chosen:
        return _path(chosen, environ)

    # The XDG rules: a relative path is invalid and ignored.
    base = environ.get("XDG_STATE_HOME", "")
    return _path(base if os.path.isabs(base) else "~/.local/state", environ) / "acp-server"


def load_settings(*, flags: Mapping[str, str | None], environ: Mapping[str, str], state_dir: Path) -> Loaded:
    """Every setting there is; never raises for what a person wrote.

    Args:
        flags: `model`, `permission_mode`, `sandbox`, `store`, `config`, `log_level`, `trace`; empty or
            None is none.
        environ: The environment; an empty variable is not given.
    """
    given = dict(_flags_and_variables(flags, environ))
    config, trace = given.get("config"), given.get("trace")
    file = TomlFile(_path(config.value, environ) if config else state_dir / FILE_NAME)
    settings, log_level, error = Settings(), DEFAULT_LOG_LEVEL, None

    try:
        log_level = _log_level(given)
        file = read_toml(file.path, required=config is not None)
        settings = _settings(file, given)
    except ConfigError as wrong:
        error = wrong

    return Loaded(
        settings=settings,
        state_dir=state_dir,
        log_level=log_level,
        trace=_path(trace.value, environ) if trace else None,
        warnings=(*_exposed(settings, file), *_unread_in_words(file)),
        error=error,
        _file=file,
        _given=given,
    )


def _flags_and_variables(
    flags: Mapping[str, str | None], environ: Mapping[str, str]
) -> Iterator[tuple[str, _Given]]:
    for flag, name in _FLAGS.items():
        variable = f"ACP_SERVER_{flag.upper()}"
        if value := flags.get(flag):
            yield name, _Given(value, f"--{flag.replace('_', '-')}")
        elif value := environ.get(variable):
            yield name, _Given(value, variable)


def _log_level(given: Mapping[str, _Given]) -> str:
    level, origin = given.get("log_level", _Given(DEFAULT_LOG_LEVEL, DEFAULT))
    if level.lower() not in LOG_LEVELS:
        raise ConfigError(f"{origin} must be one of {', '.join(LOG_LEVELS)}{_shown(level)}.", path=origin)
    return level.lower()


def _settings(file: TomlFile, given: Mapping[str, _Given]) -> Settings:
    data = dict(file.data)
    for table in ("agent", "store"):
        chosen = {
            key: it.value for name, it in given.items() if (key := name.removeprefix(f"{table}.")) != name
        }
        data[table] = _layered({}, data.get(table, {}), chosen)
    data["providers"] = _with_built_ins(data.get("providers", {}))

    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        raise _in_our_words(error.errors(include_url=False)[0], file, given) from error


def _with_built_ins(tables: Any) -> Any:
    if not isinstance(tables, dict):
        return tables
    # A table for a built-in provider need not repeat its kind.
    kinds: Json = {name: {"kind": name} for name in BUILT_IN_PROVIDERS}
    return {**kinds, **{name: _layered(kinds.get(name, {}), table, {}) for name, table in tables.items()}}


def _layered(below: Json, table: Any, above: Json) -> Any:
    """One table over another; what is no table stays what it is, to be found wrong."""
    return {**below, **table, **above} if isinstance(table, dict) else table


def _in_our_words(wrong: ErrorDetails, file: TomlFile, given: Mapping[str, _Given]) -> ConfigError:
    key, value = wrong["loc"], wrong["input"]
    match wrong["type"]:
        case "must_be":
            words = wrong["msg"] + ("" if key[0] in _SECRET else _shown(value))
        case "missing":
            words = f"{REQUIRED_WORDS[str(key[-1])]}, and is missing"
        case "extra_forbidden":
            # Only rules forbid what nobody reads.
            words = f"one of {', '.join(RuleSettings.model_fields)}"
        case "list_type":
            words = "an array of tables"
        case _:
            words = "a table"

    name = dotted(key)
    if name in given:
        origin = given[name].origin
        return ConfigError(f"{origin} must be {words}.", path=origin)
    line = file.line(key)
    return ConfigError(f"{name} must be {words} ({file.path}, line {line}).", path=str(file.path), line=line)


def _shown(value: object) -> str:
    text = repr(value)
    return f", not {text}" if len(text) <= _LONGEST_SHOWN_CHARS else ""


def _exposed(settings: Settings, file: TomlFile) -> Iterator[str]:
    if not any(provider.api_key for provider in settings.providers.values()):
        return

    from agent_loop.private_file import readable_by_others  # everybody waits for the start, few have one

    if readable_by_others(file.path):
        yield f"Others on this machine can read the key in {file.path}: chmod 600 {file.path}"


def _unread_in_words(file: TomlFile) -> Iterator[str]:
    for key in _unread(file.data):
        yield f"Nothing reads the key {dotted(key)} ({file.path}, line {file.line(key)})."


def _unread(data: Json) -> Iterator[Key]:
    tables: list[tuple[Key, Any, type[_AnyTable]]] = [
        ((), data, Settings),
        (("agent",), data.get("agent"), AgentSettings),
        (("store",), data.get("store"), StoreSettings),
        (("permission",), data.get("permission"), PermissionSettings),
        (("fetch",), data.get("fetch"), FetchSettings),
        (("sandbox",), data.get("sandbox"), SandboxSettings),
    ]
    providers, agents, plugins = data.get("providers"), data.get("agents"), data.get("plugins")
    models = data.get("models")
    if isinstance(plugins, dict):
        tables.append((("plugins", "retry"), plugins.get("retry"), RetrySettings))
    if isinstance(providers, dict):
        tables += [(("providers", name), table, ProviderSettings) for name, table in providers.items()]
    if isinstance(models, dict):
        tables += [(("models", name), table, ModelSettings) for name, table in models.items()]
        yield from (("models", name) for name in models if "/" not in name)
    if isinstance(agents, list):
        tables += [(("agents", at), table, AgentEntry) for at, table in enumerate(agents)]

    for above, table, model in tables:
        if isinstance(table, dict):
            yield from ((*above, name) for name in table if name not in model.model_fields)


def _path(text: str, environ: Mapping[str, str]) -> Path:
    """A path as a person writes it; editors pass `~` on as it stands, no shell expands it."""
    if text == "~" or text.startswith("~/"):
        text = (environ.get("HOME") or os.path.expanduser("~")) + text[1:]
    return Path(os.path.abspath(text))
