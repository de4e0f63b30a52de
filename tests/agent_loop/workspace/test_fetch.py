"""WebFetcher against a real server on loopback."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import anyio
import pytest

from agent_loop.workspace import fetch
from agent_loop.workspace.fetch import FetchRefused, Page, WebFetcher, is_public


@dataclass
class Site:
    """Answers by path: status, headers, body; what was asked is kept."""

    port: int = 0
    pages: dict[str, tuple[int, dict[str, str], bytes]] = field(default_factory=dict)
    hosts: list[str | None] = field(default_factory=list)
    silent: threading.Event = field(default_factory=threading.Event)

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"


@contextmanager
def serving(site: Site) -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.hosts.append(self.headers["Host"])
            if self.path == "/silent":
                site.silent.wait(10)
                return
            status, headers, body = site.pages[self.path]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):  # the fetcher had enough
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield site
    finally:
        site.silent.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        yield site


async def loopback(host: str, port: int) -> list[str]:
    return ["127.0.0.1"]


ALLOWED = WebFetcher(allow_private=True, resolve=loopback)


async def test_a_page_comes_whole_from_the_host_that_was_named(site: Site) -> None:
    """Our promise: the address is checked, and the host is still the one that was asked for."""
    site.pages["/a?b"] = (200, {"Content-Type": "Text/HTML; charset=latin-1"}, b"<p>hi")

    page = await ALLOWED.get(site.url("/a?b#c", "example.test"))

    assert page == Page(site.url("/a?b#c", "example.test"), 200, b"<p>hi", "text/html", "latin-1")
    assert site.hosts == [f"example.test:{site.port}"]


async def test_this_machine_and_its_networks_are_refused_unless_allowed(site: Site) -> None:
    """Issue: private addresses are refused, by whatever name they are reached."""
    fetcher = WebFetcher()

    for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"):
        with pytest.raises(FetchRefused, match="an address of a private network, which is not allowed"):
            await fetcher.get(site.url("/", host))
    with pytest.raises(FetchRefused, match=r"example\.test is 127\.0\.0\.1, an address of a private"):
        await WebFetcher(resolve=loopback).get(site.url("/", "example.test"))
    assert site.hosts == []


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("::ffff:8.8.8.8", True),
        ("10.0.0.1", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("64:ff9b::7f00:1", False),
        ("2002:7f00:1::", False),
    ],
)
def test_an_address_is_public_or_not_also_when_it_wraps_another(address: str, public: bool) -> None:
    """Issue: private, loopback and link-local; by their other spellings, too."""
    assert is_public(address) is public


async def test_a_redirect_is_followed_on_its_host_and_told_when_it_leaves(site: Site) -> None:
    """Contracts 2: what was consented to is one host; each hop is checked."""
    site.pages["/a"] = (302, {"Location": "/b"}, b"")
    site.pages["/b"] = (200, {"Content-Type": "text/plain"}, b"here")
    site.pages["/out"] = (301, {"Location": "https://elsewhere.test/x"}, b"")
    site.pages["/loop"] = (302, {"Location": "/loop"}, b"")
    site.pages["/bad"] = (302, {"Location": "file:///etc/passwd"}, b"")

    assert (await ALLOWED.get(site.url("/a"))).content == b"here"
    assert (await ALLOWED.get(site.url("/out"))).redirect == "https://elsewhere.test/x"
    with pytest.raises(FetchRefused, match="redirects more than 5 times"):
        await ALLOWED.get(site.url("/loop"))
    with pytest.raises(FetchRefused, match="file:///etc/passwd is no address that begins with http"):
        await ALLOWED.get(site.url("/bad"))


async def test_a_host_whose_address_changes_is_checked_at_every_hop(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: a name that means something else a moment later changes nothing."""
    site.pages["/a"] = (302, {"Location": "/b"}, b"")
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    async def resolve(host: str, port: int) -> list[str]:
        return answers.pop(0)

    real = fetch.is_public
    monkeypatch.setattr(fetch, "is_public", lambda address: address == "127.0.0.1" or real(address))

    with pytest.raises(FetchRefused, match=r"is 10\.0\.0\.1, an address of a private network"):
        await WebFetcher(resolve=resolve).get(site.url("/a", "example.test"))
    assert len(site.hosts) == 1


async def test_bytes_and_time_are_bounded(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: bounded."""
    monkeypatch.setattr(fetch, "PAGE_LIMIT_BYTES", 1_000)
    site.pages["/big"] = (200, {}, b"x" * 100_000)
    site.pages["/packed"] = (200, {"Content-Encoding": "gzip"}, b"x")

    big = await ALLOWED.get(site.url("/big"))
    with pytest.raises(FetchRefused, match="comes packed"):
        await ALLOWED.get(site.url("/packed"))
    monkeypatch.setattr(fetch, "TIMEOUT_S", 0.3)
    with anyio.fail_after(10), pytest.raises(FetchRefused, match=r"did not answer whole within 0\.3 s"):
        await ALLOWED.get(site.url("/silent"))

    assert (len(big.content), big.truncated, big.content_type) == (1_000, True, "")


@pytest.mark.parametrize(
    "url", ["", "a.b", "ftp://a/b", "http://", "http://a:99999/", "http://[::1", "http://a b/", "http://a/\n"]
)
async def test_what_is_no_address_is_refused(url: str) -> None:
    """Style: words a model can act on."""
    with pytest.raises(FetchRefused, match="is no address that begins with http"):
        await ALLOWED.get(url)


async def test_a_name_in_the_address_and_a_host_that_is_none_are_refused() -> None:
    """Our promise: no password travels in an address; failures are words."""

    async def unknown(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    with pytest.raises(FetchRefused, match="with a user's name in it"):
        await ALLOWED.get("http://me:secret@example.test/")
    with pytest.raises(FetchRefused, match=r"there is no host example\.test"):
        await WebFetcher(resolve=unknown).get("http://example.test/")
    with serving(Site()) as gone:
        port = gone.port
    with pytest.raises(FetchRefused, match="could not be got"):
        await ALLOWED.get(f"http://127.0.0.1:{port}/")
