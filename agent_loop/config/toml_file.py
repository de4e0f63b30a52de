"""Reads one TOML file, and knows on which line each of its keys is set.

Owns syntax and lines, in our own words. What keys mean belongs to `settings`.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from agent_loop.errors import ConfigError
from agent_loop.messages import Json

Key = tuple[str | int, ...]
"""A key from the top: `("agent", "model")`, `("agents", 0, "id")`."""

_LINE: Final = re.compile(r"\(at line (\d+),")


@dataclass
class TomlFile:
    """What a file says, never shown: a key may stand in it."""

    path: Path
    text: str = field(default="", repr=False)
    data: Json = field(default_factory=dict, repr=False)

    def line(self, key: Key) -> int | None:
        """The line that sets `key`, counted from 1, or else the nearest table or value around it."""
        for end in range(len(key), 0, -1):
            if key[:end] in self._lines:
                return self._lines[key[:end]]
        return None

    @cached_property
    def lines_by_name(self) -> dict[str, int | None]:
        """The line of every key in the file, by its dotted name."""
        return {dotted(key): self.line(key) for key in _keys_of(self.data, ())}

    @cached_property
    def _lines(self) -> dict[Key, int]:
        return dict(_lines_of(self.text))


def read_toml(path: Path, *, required: bool) -> TomlFile:
    """The file at `path`; an empty one when it may be missing and is.

    Raises:
        ConfigError: It cannot be read, or is not TOML.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        if required:
            raise ConfigError(f"There is no settings file {path}.", path=str(path)) from error
        return TomlFile(path)
    except OSError as error:
        raise ConfigError(
            f"Settings file {path} cannot be read: {error.strerror}.", path=str(path)
        ) from error

    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            f"Settings file {path} is not UTF-8 in line {line}.", path=str(path), line=line
        ) from error

    import tomllib  # most people have no file, and everybody waits for the start

    try:
        return TomlFile(path, text, tomllib.loads(text))
    except (ValueError, RecursionError) as error:
        place = _LINE.search(str(error))
        line = int(place[1]) if place else text.count("\n") + 1
        raise ConfigError(
            f"Settings file {path} is not valid TOML in line {line}.", path=str(path), line=line
        ) from error


def dotted(key: Key) -> str:
    """A key as a person writes it: `agents[0].id`."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key).removeprefix(".")


def _keys_of(value: Any, above: Key) -> Iterator[Key]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in parts:
        yield (*above, name)
        yield from _keys_of(inner, (*above, name))


def _lines_of(text: str) -> Iterator[tuple[Key, int]]:
    """Each key with its line, from the statements of a text that is known to parse."""
    table: Key = ()
    arrays: Counter[Key] = Counter()

    for line, statement, data in _statements(text):
        names = _only_path(data)
        if statement.lstrip().startswith("["):
            table = ()
            for name in names:
                table = _latest(arrays, (*table, name))
            if statement.lstrip().startswith("[["):
                path = table if isinstance(table[-1], str) else table[:-1]
                arrays[path] += 1
                table = _latest(arrays, path)
            yield table, line
        else:
            for end in range(1, len(names) + 1):
                yield (*table, *names[:end]), line


def _statements(text: str) -> Iterator[tuple[int, str, Json]]:
    """The parser itself says where a statement ends: where what was read so far first parses alone."""
    import tomllib

    rows, start = text.split("\n"), 0
    for end in range(1, len(rows) + 1):
        statement = "\n".join(rows[start:end])
        try:
            data = tomllib.loads(statement)
        except ValueError:
            continue

        if data:
            yield start + 1, statement, data
        start = end


def _only_path(data: Any) -> list[str]:
    names = []
    while isinstance(data, dict) and len(data) == 1:
        ((name, data),) = data.items()
        names.append(name)
    return names


def _latest(arrays: Counter[Key], path: Key) -> Key:
    return (*path, arrays[path] - 1) if path in arrays else path
