"""A provider on an official SDK: what they have in common, whichever format they speak.

Owns the connection: the SDK gives authentication, time limits, error classes and the HTTP client. Which
SDK, what a request says and what an answer means belongs to the subclass; failures are worded by `failures`.

Rules.
1. The SDK is imported by `load()` in a worker thread, never on the event loop: it takes seconds.
2. Bytes go in and bytes come out: typed messages cost 0.4 ms each, per request, and typed events a hundred
   times our own reading.
3. A body is read to its end, past the end mark, or the next request needs a new connection.
4. No cancel scope stands around a `yield`; the HTTP client's own read limit is the idle limit.
"""

import gc
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import anyio
import orjson
from anyio import to_thread

from agent_loop.chunks import Chunk
from agent_loop.errors import Disposed, ProviderError
from agent_loop.llm.provider import ModelRequest
from agent_loop.llm.providers.endpoint import Endpoint, endpoint_at
from agent_loop.llm.providers.failures import from_library, malformed
from agent_loop.llm.providers.sse import EventStream
from agent_loop.record import record

if TYPE_CHECKING:
    import httpx2

CLOSE_GRACE_S = 1.0
DRAIN_S = 1.0
MODELS_S = 5.0
MODELS_LIMIT = 500


class Answer(Protocol):
    """Reads the events of one answer.

    Attributes:
        done: Whether the end mark was read; what follows it is ignored.
    """

    done: bool

    @property
    def finished(self) -> bool:
        """Whether all that matters was said, so that a cut does no harm."""

    def feed(self, event: bytes) -> Sequence[Chunk]:
        """The chunks of one event.

        Raises:
            ProviderError: The event reports a failure, or makes no sense.
        """

    def ending(self, stray: bytes = b"") -> Sequence[Chunk]:
        """Usage and finish, once the stream has ended.

        Args:
            stray: What came instead of events.
        Raises:
            ProviderError: The answer is not whole, or there is none.
        """


@record
class Sdk:
    """An SDK, imported, with a client of it.

    Attributes:
        module: The package, for its error classes.
        client: Its asynchronous client; both SDKs are made by one generator, and their types share no name.
        headers: Sent with each request, over what the client would send; the key comes on top.
    """

    module: Any
    client: Any
    headers: dict[str, Any]


class SdkProvider(ABC):
    """A provider; one object is one endpoint with one key at a time."""

    path: ClassVar[str]
    """Where requests go, below the client's base URL."""

    models_path: ClassVar[str]
    """Where it says which models there are."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.name = endpoint.name
        self._endpoint = endpoint
        self._sdk: Sdk | None = None
        self._building = threading.Lock()
        self._closed = False

    @abstractmethod
    def _connect(self) -> Sdk:
        """Import the SDK and make a client that never retries by itself; runs in a worker thread."""

    @abstractmethod
    def _key_headers(self, sdk: Sdk) -> dict[str, Any]:
        """What proves who asks, for the key the endpoint has now."""

    @abstractmethod
    def _body(self, request: ModelRequest) -> bytes:
        """The request in the format's words."""

    @abstractmethod
    def _answer(self) -> Answer:
        """What reads one answer."""

    def _mended(self, request: ModelRequest, refused: ProviderError) -> bytes | None:
        """The request in other words, where those were at fault that it was refused for; else None."""
        return None

    @property
    def api_key(self) -> str | None:
        """The key that the next request is sent with."""
        return self._endpoint.api_key

    def use_key(self, api_key: str | None) -> None:
        """Send another key from the next request on; answers under way are not disturbed.

        Raises:
            ConfigError: The key cannot be one.
        """
        here = self._endpoint
        self._endpoint = endpoint_at(here.name, here.base_url, api_key, here.idle_timeout_s)

    async def load(self) -> None:
        """Import the SDK and make the client, in a worker thread that a cancelled caller leaves behind."""
        if self._sdk is None:
            await to_thread.run_sync(self._build, abandon_on_cancel=True)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """The answer, piece by piece.

        Raises:
            ProviderError: The endpoint, its answer or the way to it failed.
            Disposed: The provider was closed.
        """
        await self.load()
        response = await self._ask(request)

        pieces = response.aiter_bytes()
        events, answer = EventStream(self.name), self._answer()

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

    async def models(self) -> tuple[str, ...]:
        """The names it answers to, in its own order, at most MODELS_LIMIT of them.

        Raises:
            ProviderError: It does not tell, or not within MODELS_S.
            Disposed: The provider was closed.
        """
        import httpx2

        await self.load()
        sdk = self._open_sdk()
        try:
            response = await sdk.client.get(
                self.models_path,
                cast_to=httpx2.Response,
                options={"headers": self._headers(sdk), "timeout": MODELS_S},
            )
        except Exception as error:
            if failure := from_library(self._endpoint, error, sdk.module):
                raise failure from error
            raise
        return names_in(self._endpoint, response.content)

    async def aclose(self) -> None:
        """Close the connections, within CLOSE_GRACE_S; later requests raise `Disposed`."""
        self._closed = True
        sdk, self._sdk = self._sdk, None

        if sdk is not None:
            with anyio.move_on_after(CLOSE_GRACE_S, shield=True):
                await sdk.client.close()

    async def _ask(self, request: ModelRequest) -> "httpx2.Response":
        try:
            return await self._post(self._body(request))
        except ProviderError as refused:
            body = self._mended(request, refused)

            if body is None:
                raise

        return await self._post(body)

    async def _post(self, body: bytes) -> "httpx2.Response":
        import httpx2

        sdk = self._open_sdk()

        try:
            response: httpx2.Response = await sdk.client.post(
                self.path,
                content=body,
                cast_to=httpx2.Response,
                options={"headers": self._headers(sdk)},
                stream=True,
            )
        except Exception as error:
            if failure := from_library(self._endpoint, error, sdk.module):
                raise failure from error
            raise

        return response

    def _headers(self, sdk: Sdk) -> dict[str, Any]:
        return {**sdk.headers, **self._key_headers(sdk)}

    def _open_sdk(self) -> Sdk:
        if self._sdk is None or self._closed:
            raise Disposed(f"{self.name} is closed")
        return self._sdk

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
            if self._sdk is not None or self._closed:
                return

            self._sdk = self._connect()
            # The SDK's 50,000 objects live as long as we do; each full collection would visit them for 45 ms.
            gc.freeze()


def names_in(endpoint: Endpoint, body: bytes) -> tuple[str, ...]:
    """The names in a list of models, as every maker writes it.

    Raises:
        ProviderError: It is none.
    """
    try:
        listed = orjson.loads(body)
    except orjson.JSONDecodeError:
        listed = None
    match listed:
        case {"data": [*models]}:
            names = (model.get("id") for model in models if isinstance(model, dict))
            return tuple(name for name in names if isinstance(name, str) and name)[:MODELS_LIMIT]
        case _:
            raise malformed(endpoint, "sent something else than a list of its models")


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read what is left of a finished answer; whatever goes wrong with it matters to nobody."""
    import httpx2

    with anyio.move_on_after(DRAIN_S):
        try:
            async for _ in pieces:
                pass
        except httpx2.HTTPError:
            return
