"""Gets one page from the web, bounded in bytes and time, and never from this machine's own networks.

Rules.
1. A host is resolved here, every address it has is checked, and the connection goes to a checked one: a name
   that means something else a moment later changes nothing. So no proxy is used; it would resolve by itself.
2. A redirect is followed to the same host only, and checked again. Another host was not consented to.
3. Bytes are asked for unpacked, and counted as they come.
"""

import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol
from urllib.parse import SplitResult, urljoin, urlsplit

import anyio
from anyio.to_thread import run_sync

from agent_loop.errors import in_words
from agent_loop.record import record

TIMEOUT_S = 30.0
PAGE_LIMIT_BYTES = 5_000_000
REDIRECTS_LIMIT = 5
_PORTS: Final = {"http": 80, "https": 443}
_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
_HEADERS: Final = {"User-Agent": "acp-agent-server", "Accept": "*/*", "Accept-Encoding": "identity"}

Resolve = Callable[[str, int], Awaitable[list[str]]]


class FetchRefused(Exception):
    """It was not got; the message says why, for the model to read."""


@record
class Page:
    """What came.

    Attributes:
        url: Where from, after redirects.
        content_type: As the server says, lower case, without parameters; empty when it does not say.
        charset: As the server says; None when it does not.
        redirect: Address on another host that was not followed; the page is empty then.
        truncated: More came than `PAGE_LIMIT_BYTES`.
    """

    url: str
    status: int
    content: bytes = b""
    content_type: str = ""
    charset: str | None = None
    redirect: str | None = None
    truncated: bool = False


class Fetcher(Protocol):
    """Gets pages for one session."""

    async def get(self, url: str) -> Page:
        """One page.

        Raises:
            FetchRefused: The address is none, or not allowed, or nobody answered in time.
        """


class WebFetcher:
    """From the web itself."""

    def __init__(self, *, allow_private: bool = False, resolve: Resolve | None = None) -> None:
        """Make a fetcher.

        Args:
            allow_private: Let it reach this machine and its private networks.
            resolve: Gives a host's addresses; the system's way when left out.
        """
        self._allow_private = allow_private
        self._resolve = resolve or _resolve

    async def get(self, url: str) -> Page:
        """One page, as the seam says."""
        # Importing takes a third of a second, and reading certificates some more; no stream should feel that.
        library, client = await run_sync(_client)
        try:
            with anyio.fail_after(TIMEOUT_S):
                async with client:
                    return await self._follow(client, url)
        except TimeoutError as error:
            raise FetchRefused(f"{url} did not answer whole within {TIMEOUT_S:g} s") from error
        except (library.HTTPError, library.InvalidURL) as error:
            raise FetchRefused(f"{url} could not be got: {in_words(error)}") from error

    async def _follow(self, client: Any, url: str) -> Page:
        first = parts = parse_url(url)
        for _ in range(REDIRECTS_LIMIT + 1):
            page = await self._get(client, parts)
            if page.redirect is None:
                return page

            parts = parse_url(page.redirect)
            if parts.hostname != first.hostname or (parts.scheme, first.scheme) == ("http", "https"):
                return page
        raise FetchRefused(f"{url} redirects more than {REDIRECTS_LIMIT} times")

    async def _get(self, client: Any, parts: SplitResult) -> Page:
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        address = await self._checked_address(host, port)
        literal = f"[{address}]" if ":" in address else address
        there = parts._replace(netloc=f"{literal}:{port}", fragment="").geturl()
        headers = {**_HEADERS, "Host": parts.netloc}

        async with client.stream(
            "GET", there, headers=headers, extensions={"sni_hostname": host}
        ) as response:
            url = parts.geturl()
            location = response.headers.get("location")
            if response.is_redirect and location:
                return Page(url, response.status_code, redirect=urljoin(url, location))
            if response.headers.get("content-encoding", "identity") != "identity":
                raise FetchRefused(f"{url} comes packed, though it was asked for as it is")

            content = bytearray()
            async for part in response.aiter_raw():
                content += part
                if len(content) > PAGE_LIMIT_BYTES:
                    break
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            return Page(
                url,
                response.status_code,
                bytes(content[:PAGE_LIMIT_BYTES]),
                kind,
                response.charset_encoding,
                truncated=len(content) > PAGE_LIMIT_BYTES,
            )

    async def _checked_address(self, host: str, port: int) -> str:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise FetchRefused(f"there is no host {host}") from error

        refused = [address for address in addresses if not is_public(address)]
        if refused and not self._allow_private:
            which = "" if refused[0] == host else f"{refused[0]}, "
            raise FetchRefused(f"{host} is {which}an address of a private network, which is not allowed")
        return addresses[0]


def parse_url(url: str) -> SplitResult:
    """The parts of an address that may be got.

    Raises:
        FetchRefused: It is none, or carries a password.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _no_address(url) from error
    if parts.scheme not in _PORTS or not parts.hostname or port == 0 or " " in url or not url.isprintable():
        raise _no_address(url)
    if "@" in parts.netloc:
        raise FetchRefused("an address with a user's name in it is not got")
    return parts


def _no_address(url: str) -> FetchRefused:
    return FetchRefused(f"{url} is no address that begins with http:// or https://")


def is_public(address: str) -> bool:
    """Whether an address is somebody's on the internet, also one that wraps another."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast


async def _resolve(host: str, port: int) -> list[str]:
    found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


def _client() -> tuple[Any, Any]:
    import httpx2

    return httpx2, httpx2.AsyncClient(trust_env=False, timeout=None)
