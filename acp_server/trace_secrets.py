"""What a trace must not tell: keys, tokens, and whatever an editor hands to MCP servers. Pure.

Only whole values are found: a secret a model spells out over several chunks is not.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

HIDDEN: Final = "<secret>"
SHORTEST_CHARS: Final = 6
"""Shorter values are no keys, and hiding them would hide half of the trace."""

_VARIABLE: Final = re.compile(
    r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE
)
# Compared without dashes and underscores, in lower case.
_FIELDS: Final = frozenset(
    {
        "accesstoken",
        "apikey",
        "authorization",
        "clientsecret",
        "cookie",
        "password",
        "proxyauthorization",
        "refreshtoken",
        "setcookie",
        "xapikey",
        "xauthtoken",
    }
)
_RAW_VALUE: Final = re.compile(r'("(?P<field>[^"\\]*)"\s*:\s*)"(?:[^"\\]|\\.)*"?')


def secrets_in(environ: Mapping[str, str], named: Iterable[str]) -> list[str]:
    """Values of the variables that are `named`, or whose names say that they hold a secret."""
    names = {*named, *filter(_VARIABLE.search, environ)}
    values = {environ.get(name, "") for name in names}
    # The longest first: one may be the beginning of another.
    return sorted((value for value in values if len(value) >= SHORTEST_CHARS), key=len, reverse=True)


def without_secrets(value: Any, secrets: Sequence[str]) -> Any:
    """A copy of a JSON value in which nothing is told."""
    if isinstance(value, str):
        return _text(value, secrets)
    if isinstance(value, list):
        return [without_secrets(item, secrets) for item in value]
    if not isinstance(value, dict):
        return value

    copy = {_text(key, secrets): _member(key, item, secrets) for key, item in value.items()}
    if "value" in copy and _is_field(copy.get("name")):
        copy["value"] = HIDDEN
    return copy


def raw_without_secrets(line: str, secrets: Sequence[str]) -> str:
    """The same for a line that is no JSON: where it looks like JSON, what looks like a secret goes."""
    servers = "mcpServers" in line

    def hidden(found: re.Match[str]) -> str:
        secret = _is_field(found["field"]) or (servers and found["field"] not in ("name", "command", "cwd"))
        return f'{found[1]}"{HIDDEN}"' if secret else found[0]

    return _text(_RAW_VALUE.sub(hidden, line), secrets)


def _member(key: str, value: Any, secrets: Sequence[str]) -> Any:
    if _is_field(key) and value is not None:
        return HIDDEN
    value = without_secrets(value, secrets)
    if key == "mcpServers" and isinstance(value, list):
        return [_server(server) for server in value]
    return value


def _server(server: Any) -> Any:
    """An MCP server without the values of its environment and its headers."""
    if not isinstance(server, dict):
        return server
    return {key: _values(item) if key in ("env", "headers") else item for key, item in server.items()}


def _values(pairs: Any) -> Any:
    if isinstance(pairs, dict):
        return dict.fromkeys(pairs, HIDDEN)
    if isinstance(pairs, list):
        return [{**pair, "value": HIDDEN} if isinstance(pair, dict) else HIDDEN for pair in pairs]
    return pairs


def _text(text: str, secrets: Sequence[str]) -> str:
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def _is_field(name: Any) -> bool:
    return isinstance(name, str) and name.lower().replace("-", "").replace("_", "") in _FIELDS
