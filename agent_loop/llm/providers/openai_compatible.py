"""Models behind an endpoint that speaks OpenAI's chat completions.

Owns the connection: the SDK gives authentication, time limits, error classes and the HTTP client. The
request is written by `openai_request`, the answer read by `sse` and `openai_stream`, failures worded by
`openai_errors`.

Rules.
1. The SDK is imported by `load()` in a worker thread, never on the event loop: it takes about a second.
2. Bytes go in and bytes come out: the SDK's typed messages cost 0.4 ms each, per request.
3. A body is read to its end, past `[DONE]`, or the next request needs a new connection.
4. No cancel scope stands around a `yield`; the HTTP client's own read limit is the idle limit.
"""

import gc
import threading
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
from anyio import to_thread

from agent_loop.chunks import Chunk
from agent_loop.errors import ConfigError, Disposed
from agent_loop.llm.provider import ModelRequest
from agent_loop.llm.providers.openai_errors import CONNECT_TIMEOUT_S, Endpoint, from_library
from agent_loop.llm.providers.openai_request import request_body
from agent_loop.llm.providers.openai_stream import Answer
from agent_loop.llm.providers.sse import EventStream

if TYPE_CHECKING:
    import httpx2
    import openai

OPENAI_HOST = "api.openai.com"
CLOSE_GRACE_S = 1.0
DRAIN_S = 1.0


class OpenAICompatible:
    """A provider; one object is one endpoint with one key."""

    def __init__(self, name: str, base_url: str, api_key: str | None, idle_timeout_s: float = 120.0) -> None:
        """Describe the endpoint; nothing is imported or opened yet.

        Args:
            base_url: Up to and without `/chat/completions`.
            api_key: None or empty for an endpoint that needs none.
            idle_timeout_s: Longest silence, before the first byte or between two.
        Raises:
            ConfigError: The address or the key cannot be one.
        """
        address = urlsplit(base_url)

        if address.scheme not in ("http", "https") or not address.hostname:
            raise ConfigError(
                f"base_url of {name} must begin with http:// or https:// and a host: {base_url!r}"
            )

        key = (api_key or "").strip()

        # The HTTP client would refuse such a key with the key in its message.
        if not all("!" <= char <= "~" for char in key):
            raise ConfigError(f"the key for {name} has a blank, a line break or a letter no key can have")

        self.name = name
        self._endpoint = Endpoint(name, base_url.rstrip("/"), key or None, idle_timeout_s)
        self._returns_reasoning = address.hostname != OPENAI_HOST
        self._client: openai.AsyncOpenAI | None = None
        self._headers: dict[str, str | openai.Omit] = {}
        self._building = threading.Lock()
        self._closed = False

    async def load(self) -> None:
        """Import the SDK and make the client, in a worker thread that a cancelled caller leaves behind."""
        if self._client is None:
            await to_thread.run_sync(self._build, abandon_on_cancel=True)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """The answer, piece by piece.

        Raises:
            ProviderError: The endpoint, its answer or the way to it failed.
            Disposed: The provider was closed.
        """
        await self.load()
        body = request_body(request, returns_reasoning=self._returns_reasoning)
        response = await self._post(body)

        pieces = response.aiter_bytes()
        events, answer = EventStream(), Answer(self._endpoint)

        try:
            while not answer.done and (piece := await self._read(pieces, answer)) is not None:
                for event in events.feed(piece):
                    for chunk in answer.feed(event):
                        yield chunk

            for event in events.close():
                for chunk in answer.feed(event):
                    yield chunk

            if answer.done:
                await _drain(pieces)
        finally:
            with anyio.move_on_after(CLOSE_GRACE_S, shield=True):
                await pieces.aclose()
                await response.aclose()

        for chunk in answer.ending(events.stray):
            yield chunk

    async def aclose(self) -> None:
        """Close the connections, within CLOSE_GRACE_S; later requests raise `Disposed`."""
        self._closed = True
        client, self._client = self._client, None

        if client is not None:
            with anyio.move_on_after(CLOSE_GRACE_S, shield=True):
                await client.close()

    async def _post(self, body: bytes) -> "httpx2.Response":
        import httpx2

        if self._client is None or self._closed:
            raise Disposed(f"{self.name} is closed")

        try:
            return await self._client.post(
                "/chat/completions",
                content=body,
                cast_to=httpx2.Response,
                options={"headers": self._headers},
                stream=True,
            )
        except Exception as error:
            if failure := from_library(self._endpoint, error):
                raise failure from error
            raise

    async def _read(self, pieces: AsyncIterator[bytes], answer: Answer) -> bytes | None:
        """The next bytes; None at the end, clean or not when the answer is whole."""
        try:
            return await anext(pieces, None)
        except Exception as error:
            failure = from_library(self._endpoint, error)

            if failure is None:
                raise

            if answer.finished:
                return None

            raise failure from error

    def _build(self) -> None:
        """Import and construct; several threads may be here at once, and one of them does it."""
        with self._building:
            if self._client is not None or self._closed:
                return

            import httpx2
            import openai

            # What the environment holds for OpenAI is no business of another endpoint's, so all is said here.
            key = self._endpoint.api_key
            self._headers["Authorization"] = openai.omit if key is None else f"Bearer {key}"

            if self._returns_reasoning:
                self._headers |= {"OpenAI-Organization": openai.omit, "OpenAI-Project": openai.omit}

            self._client = openai.AsyncOpenAI(
                base_url=self._endpoint.base_url,
                api_key=key or "none",
                max_retries=0,
                timeout=httpx2.Timeout(self._endpoint.idle_timeout_s, connect=CONNECT_TIMEOUT_S),
            )
            # The SDK's 50,000 objects live as long as we do; each full collection would visit them for 45 ms.
            gc.freeze()


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read what is left of a finished answer; whatever goes wrong with it matters to nobody."""
    import httpx2

    with anyio.move_on_after(DRAIN_S):
        try:
            async for _ in pieces:
                pass
        except httpx2.HTTPError:
            return
