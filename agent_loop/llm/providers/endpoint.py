"""Where a model's answers come from: an address, perhaps a key, and how long to wait.

Owns what an address and a key must look like. What a failure of the endpoint reads like belongs to
`failures`, the connection to `sdk_provider`.
"""

from dataclasses import field
from urllib.parse import urlsplit

from agent_loop.errors import ConfigError
from agent_loop.record import record


@record
class Endpoint:
    """One address with one key, or none; neither is shown by `repr`."""

    name: str
    base_url: str = field(repr=False)
    api_key: str | None = field(repr=False)
    idle_timeout_s: float

    @property
    def host(self) -> str:
        """Host and port, without the user and password an address may carry."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def address(self) -> str:
        """The base URL without them."""
        return urlsplit(self.base_url)._replace(netloc=self.host).geturl()

    def is_at(self, host: str) -> bool:
        """Whether the address is one of `host`, whatever the port."""
        return urlsplit(self.base_url).hostname == host


def endpoint_at(name: str, base_url: str, api_key: str | None, idle_timeout_s: float) -> Endpoint:
    """The endpoint somebody's settings describe; nothing is opened.

    Args:
        api_key: None or blank for an endpoint that needs none.
        idle_timeout_s: Longest silence, before the first byte or between two.
    Raises:
        ConfigError: The address or the key cannot be one.
    """
    address = urlsplit(base_url)

    if address.scheme not in ("http", "https") or not address.hostname:
        raise ConfigError(f"base_url of {name} must begin with http:// or https:// and a host: {base_url!r}")

    key = (api_key or "").strip()

    # The HTTP client would refuse such a key with the key in its message.
    if not all("!" <= char <= "~" for char in key):
        raise ConfigError(f"the key for {name} has a blank, a line break or a letter no key can have")

    return Endpoint(name, base_url.rstrip("/"), key or None, idle_timeout_s)
