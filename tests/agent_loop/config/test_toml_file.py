"""What a settings file says, and on which line it says it."""

from pathlib import Path

import pytest

from agent_loop.config.toml_file import Key, dotted, read_toml
from agent_loop.errors import ConfigError

EVERY_SHAPE = '''\
# A comment, then a blank line.

format = 1
[agent]
model = "a/b"          # 5
system_prompt = """
[not.a.table]
model = "not a key"
"""
stops = [              # 10
    "one",
    "two",
]
limits = { steps = 3, tokens = 4 }
[providers.local]      # 15
kind = "openai"
net.proxy.host = "h"
[[agents]]
id = "first"
[[agents]]             # 20
id = "second"
[agents.more]
deep = true
[[agents.parts]]
name = "one"           # 25
[[agents.parts]]
name = "two"
["quoted.key"]
x = 1
'''


def written(tmp_path: Path, data: str | bytes) -> Path:
    path = tmp_path / "config.toml"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("format",), 3),
        (("agent",), 4),
        (("agent", "model"), 5),
        (("agent", "system_prompt"), 6),
        (("agent", "stops"), 10),
        (("agent", "stops", 1), 10),
        (("agent", "limits", "tokens"), 14),
        (("agent", "missing"), 4),
        (("providers", "local"), 15),
        (("providers", "local", "kind"), 16),
        (("providers", "local", "net", "proxy", "host"), 17),
        (("agents", 0), 18),
        (("agents", 0, "id"), 19),
        (("agents", 1), 20),
        (("agents", 1, "id"), 21),
        (("agents", 1, "more", "deep"), 23),
        (("agents", 1, "parts", 0, "name"), 25),
        (("agents", 1, "parts", 1, "name"), 27),
        (("quoted.key", "x"), 29),
        (("nowhere",), None),
    ],
    ids=lambda it: dotted(it) if isinstance(it, tuple) else "",
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_every_key_knows_its_line(tmp_path: Path, key: Key, line: int | None, ending: str) -> None:
    """Contract 11: an unknown key warns with file and key, a wrong one fails with path and line."""
    path = written(tmp_path, EVERY_SHAPE.replace("\n", ending))

    assert read_toml(path, required=True).line(key) == line


def test_keys_are_named_as_a_person_writes_them(tmp_path: Path) -> None:
    """Our promise: messages use the words of the file."""
    path = written(tmp_path, 'format = 1\nagents = [{ id = "a" }]\n')

    assert read_toml(path, required=True).lines_by_name == {
        "format": 1,
        "agents": 2,
        "agents[0]": 2,
        "agents[0].id": 2,
    }


def test_a_file_that_may_be_missing_is_empty(tmp_path: Path) -> None:
    """Our promise: nobody has to write a settings file."""
    file = read_toml(tmp_path / "none.toml", required=False)

    assert (file.data, file.lines_by_name) == ({}, {})


def test_an_editors_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    """Our promise: some editors put one before the first letter, and nobody sees it."""
    path = written(tmp_path, b"\xef\xbb\xbfformat = 1\n")

    assert read_toml(path, required=True).data == {"format": 1}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("format = 1\nagent]\n", 2),
        ("[agent]\nmodel = \n", 2),
        ('[agent]\nmodel = "never closed\n', 2),
        ("[agent]\n[agent]\n", 2),
        ("a = [\n\n", 3),
        (b"# fine\nname = '\xff'\n", 2),
        ("a = " + "[" * 5_000, 1),
        ("a = " + "9" * 5_000, 1),
    ],
    ids=lambda it: ascii(it)[:24],
)
def test_what_is_not_toml_is_said_in_our_words(tmp_path: Path, data: str | bytes, line: int) -> None:
    """Contract 5: no library's error text, our words plus the path."""
    path = written(tmp_path, data)

    with pytest.raises(ConfigError) as raised:
        read_toml(path, required=True)

    error = raised.value
    reason = "not UTF-8" if isinstance(data, bytes) else "not valid TOML"
    assert str(error) == f"Settings file {path} is {reason} in line {line}."
    assert (error.path, error.line, error.needs_auth) == (str(path), line, False)


def test_a_file_somebody_asked_for_must_be_there(tmp_path: Path) -> None:
    """Our promise: a mistyped --config is never taken for defaults."""
    path = tmp_path / "none.toml"

    with pytest.raises(ConfigError) as raised:
        read_toml(path, required=True)

    assert (str(raised.value), raised.value.path) == (f"There is no settings file {path}.", str(path))


@pytest.mark.parametrize("required", [True, False])
def test_a_file_that_cannot_be_read_is_never_taken_for_none(tmp_path: Path, required: bool) -> None:
    """Our promise: settings somebody wrote are not passed over in silence."""
    with pytest.raises(ConfigError, match="cannot be read: Is a directory") as raised:
        read_toml(tmp_path, required=required)

    assert (raised.value.path, raised.value.line) == (str(tmp_path), None)
