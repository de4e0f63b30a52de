"""What every provider must do, whatever format it speaks: a test class inherits this and names its wire.

Owns the promises of the provider seam over a real HTTP connection. What only one format can say belongs
to that provider's own tests.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Protocol

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.chunks import Chunk, Finish, ReasoningDelta, TextDelta, ToolCallDelta, Usage, UsageChunk
from agent_loop.errors import Disposed, ErrorKind, ProviderError
from agent_loop.llm.collect import Collector
from agent_loop.llm.provider import ModelRequest, Provider, ToolSchema
from agent_loop.messages import Content, Message, Reasoning, Text, ToolCallBlock, ToolResultBlock
from tests.doubles.provider_server import ProviderServer, Reply, closed_port, provider_server

KEY = "sk-test-0123456789abcdef"
WAIT_S = 5.0

READ = ToolSchema("read", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}})

WHOLE: Sequence[Chunk] = (
    ReasoningDelta(0, "The person "),
    ReasoningDelta(0, "wants two files… 🙂"),
    TextDelta(1, "I read "),
    TextDelta(1, "both – naïve café."),
    ToolCallDelta(2, "c1", "read", ""),
    ToolCallDelta(2, "", "", '{"path": '),
    ToolCallDelta(2, "", "", '"a\\n.md"}'),
    ToolCallDelta(3, "c2", "read", '{"path": "b.md"}'),
    UsageChunk(Usage(input_tokens=90, output_tokens=7, cache_read_tokens=10, reasoning_tokens=3)),
    Finish("tool-calls"),
)

WHOLE_CONTENT: tuple[Content, ...] = (
    Reasoning("The person wants two files… 🙂"),
    Text("I read both – naïve café."),
    ToolCallBlock("c1", "read", '{"path": "a\\n.md"}'),
    ToolCallBlock("c2", "read", '{"path": "b.md"}'),
)

REFUSALS: list[tuple[int, Mapping[str, str], str, ErrorKind, float | None]] = [
    (401, {}, "auth", "auth", None),
    (429, {}, "rate_limit", "rate_limit", None),
    (429, {"retry-after": "7"}, "rate_limit", "rate_limit", 7.0),
    (400, {}, "context_too_long", "context_too_long", None),
    (400, {}, "invalid_request", "invalid_request", None),
    (404, {}, "model_not_found", "model_not_found", None),
    (500, {}, "server", "server", None),
    (502, {}, "server", "server", None),
    (503, {}, "overloaded", "overloaded", None),
    (529, {}, "overloaded", "overloaded", None),
]


class Wire(Protocol):
    """A format, from the endpoint's side."""

    path: str

    def events_of(self, chunks: Sequence[Chunk]) -> list[bytes]:
        """The events that say these chunks."""

    def error_body(self, kind: str, message: str) -> bytes:
        """The body of an answer with an error status, of that kind."""

    def problem(self, body: Any) -> str | None:
        """What the real endpoint would refuse about a request."""


def ask(text: str = "hello", *, session_id: str = "s1") -> ModelRequest:
    """A request a person could have caused."""
    return ModelRequest(
        "under-test", "m-1", (Message("user", (Text(text),)),), "Be brief.", (READ,), session_id
    )


async def answer_of(provider: Provider, request: ModelRequest) -> Collector:
    """The whole answer, collected, within WAIT_S."""
    collector = Collector()

    with anyio.fail_after(WAIT_S):
        async with aclosing(provider.stream(request)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                collector.add(chunk)

    return collector


async def failure_of(provider: Provider, request: ModelRequest) -> tuple[ProviderError, Collector]:
    """The error an answer ends with, and what came before it."""
    collector = Collector()

    with anyio.fail_after(WAIT_S):
        try:
            async for chunk in provider.stream(request):
                collector.add(chunk)
        except ProviderError as error:
            return error, collector

    raise AssertionError(f"the answer did not fail: {collector.content()}")


class ProviderSuite:
    """Inherit it, name the wire, make the provider."""

    wire: Wire

    def make(self, base_url: str, idle_timeout_s: float = WAIT_S) -> Provider:
        """The provider under test, with KEY."""
        raise NotImplementedError

    @pytest.fixture
    async def server(self) -> AsyncIterator[ProviderServer]:
        async with provider_server(self.wire.problem) as server:
            yield server

    @pytest.fixture
    async def provider(self, server: ProviderServer) -> AsyncIterator[Provider]:
        provider = self.make(server.base_url)
        yield provider
        await provider.aclose()

    async def test_an_answer_arrives_whole_and_in_order(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Provider seam: chunks come out, then usage, then one finish."""
        server.plan(Reply(self.wire.events_of(WHOLE)))

        answer = await answer_of(provider, ask())

        assert answer.content() == WHOLE_CONTENT
        assert answer.usage == Usage(90, 7, 10, 0, 3)
        assert answer.finish == Finish("tool-calls")

    @pytest.mark.parametrize("split", [(1,), (2,), (3,), (4,), (5,), (6,), (7,), (1, 13, 2, 89, 5)], ids=str)
    @pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "until-closed"])
    async def test_the_network_may_cut_the_bytes_anywhere(
        self, server: ProviderServer, provider: Provider, split: Sequence[int], chunked: bool
    ) -> None:
        """TCP: a read is no message."""
        server.plan(Reply(self.wire.events_of(WHOLE), split=split, chunked=chunked))

        answer = await answer_of(provider, ask())

        assert (answer.content(), answer.finish) == (WHOLE_CONTENT, Finish("tool-calls"))

    @pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
    async def test_comments_and_line_ends_change_nothing(
        self, server: ProviderServer, provider: Provider, line_end: bytes
    ) -> None:
        """HTML standard, server-sent events: three line ends, and lines that begin with a colon."""
        events = [part for event in self.wire.events_of(WHOLE) for part in (b": still busy", event)]
        server.plan(Reply(events, line_end=line_end, split=(11,)))

        answer = await answer_of(provider, ask())

        assert answer.content() == WHOLE_CONTENT

    @pytest.mark.parametrize(
        ("chunked", "reset"),
        [(True, False), (False, False), (True, True)],
        ids=["chunked", "closed", "reset"],
    )
    async def test_a_cut_answer_is_never_taken_for_a_whole_one(
        self, server: ProviderServer, provider: Provider, chunked: bool, reset: bool
    ) -> None:
        """Public reports against SDKs: a stream that just ends looks like a normal stop."""
        events = self.wire.events_of(WHOLE)
        server.plan(Reply(events, cut_after=4, chunked=chunked, reset=reset))

        error, answer = await failure_of(provider, ask())

        assert (error.kind, "cut off" in str(error)) == ("transport", True)
        assert answer.finish is None
        if not reset:
            assert answer.shown

    async def test_silence_ends_in_a_timeout(self, server: ProviderServer) -> None:
        """Contract 8: an idle limit between reads."""
        provider = self.make(server.base_url, idle_timeout_s=0.1)
        server.plan(Reply(self.wire.events_of(WHOLE), silent_after=3))

        error, answer = await failure_of(provider, ask())

        assert error.kind == "timeout"
        assert "nothing came for 0.1 s" in str(error)
        assert answer.shown
        await server.client_gone()
        await provider.aclose()

    async def test_a_cancelled_answer_hangs_up_and_the_next_one_works(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Contract 6: cancelling closes the stream; the server sees it within a second."""
        server.plan(Reply(self.wire.events_of(WHOLE), silent_after=4), Reply(self.wire.events_of(WHOLE)))
        seen = anyio.Event()

        async def read() -> None:
            async with aclosing(provider.stream(ask())) as chunks:  # type: ignore[type-var]
                async for _ in chunks:
                    seen.set()

        with anyio.fail_after(WAIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(read)
                await seen.wait()
                group.cancel_scope.cancel()

        await server.client_gone()
        assert (await answer_of(provider, ask())).content() == WHOLE_CONTENT

    async def test_an_answer_closed_early_hangs_up(self, server: ProviderServer, provider: Provider) -> None:
        """Provider seam, rule 1: the loop closes the generator, wherever it stopped."""
        server.plan(Reply(self.wire.events_of(WHOLE), silent_after=6))

        async with aclosing(provider.stream(ask())) as chunks:  # type: ignore[type-var]
            with anyio.fail_after(WAIT_S):
                await anext(chunks)

        await server.client_gone()

    async def test_a_request_cancelled_before_its_answer_hangs_up(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Contract 6: a cancel is as quick before the first byte."""
        await provider.load()
        server.plan(Reply(silent_after=0), Reply(self.wire.events_of(WHOLE)))

        async with anyio.create_task_group() as group:
            group.start_soon(failure_of, provider, ask())
            with anyio.fail_after(WAIT_S):
                while not server.requests:
                    await checkpoint()
            group.cancel_scope.cancel()

        await server.client_gone()
        assert (await answer_of(provider, ask())).content() == WHOLE_CONTENT

    async def test_forty_requests_share_one_connection(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Spike, trap 16: whoever stops at the last event throws the connection away."""
        server.plan(*[Reply(self.wire.events_of(WHOLE))] * 40)

        for _ in range(40):
            await answer_of(provider, ask())

        assert (len(server.requests), server.connections) == (40, 1)

    @pytest.mark.parametrize(("status", "headers", "said", "kind", "wait_s"), REFUSALS)
    async def test_a_refusal_has_a_kind_a_status_and_words_of_ours(
        self,
        server: ProviderServer,
        provider: Provider,
        status: int,
        headers: Mapping[str, str],
        said: str,
        kind: ErrorKind,
        wait_s: float | None,
    ) -> None:
        """Contract 5: a closed list of kinds, and no library's text on the wire."""
        body = self.wire.error_body(said, f"because of {KEY}\nand more")
        server.plan(Reply(status=status, headers=headers, body=body))

        error, answer = await failure_of(provider, ask())

        assert (error.kind, error.status, error.retry_after_s) == (kind, status, wait_s)
        assert (error.provider, KEY in str(error), "\n" in str(error)) == ("under-test", False, False)
        assert str(error).endswith("because of [key] and more")
        assert answer.content() == ()

    async def test_nobody_listening_is_a_transport_failure_that_names_the_host(self) -> None:
        """Contract 5: plain words, so that a wrong address can be mended."""
        port = closed_port()
        provider = self.make(f"http://127.0.0.1:{port}/v1")

        error, _ = await failure_of(provider, ask())

        assert (error.kind, str(error)) == ("transport", f"under-test: no connection to 127.0.0.1:{port}")
        await provider.aclose()

    async def test_an_event_that_is_no_json_is_malformed(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Spike, trap 20: a broken line must not leak as a bare decoding error."""
        events = self.wire.events_of(WHOLE)
        server.plan(Reply([*events[:5], b'data: {"bro', *events[5:]]))

        error, answer = await failure_of(provider, ask())

        assert (error.kind, answer.shown) == ("malformed", True)

    async def test_a_history_with_tool_calls_is_one_the_endpoint_takes(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Public bug reports: one call without its result makes every later prompt of a session fail."""
        server.plan(Reply(self.wire.events_of([TextDelta(0, "done"), Finish("stop")])))
        calls = Message("assistant", WHOLE_CONTENT)
        first = Message("user", (ToolResultBlock("c1", (Text("A"),)),))
        told = Message("user", (Text("<context>the file changed</context>"),))
        second = Message("user", (Text("hurry"), ToolResultBlock("c2", (), is_error=True)))
        request = ModelRequest(
            "under-test", "m-1", (*ask().messages, calls, first, told, second), tools=(READ,)
        )

        answer = await answer_of(provider, request)

        assert answer.content() == (Text("done"),)

    async def test_a_request_goes_to_the_right_place_with_the_key(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """The format's own page: path, body, authentication."""
        server.plan(Reply(self.wire.events_of(WHOLE)))

        await answer_of(provider, ask("hello"))

        (request,) = server.requests
        assert request.path == f"/v1{self.wire.path}"
        assert (request.body["model"], request.body["stream"]) == ("m-1", True)
        assert any(KEY in value for value in request.headers.values())

    async def test_loading_leaves_the_loop_free(self) -> None:
        """Spike, trap 17: the import once stopped everything for most of a second."""
        provider = self.make("http://127.0.0.1:9/v1")
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await checkpoint()

        with anyio.fail_after(10 * WAIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(tick)
                async with anyio.create_task_group() as loads:
                    loads.start_soon(provider.load)
                    loads.start_soon(provider.load)
                await provider.load()
                group.cancel_scope.cancel()

        assert ticks > 1
        await provider.aclose()

    async def test_a_closed_provider_says_so(self, server: ProviderServer) -> None:
        """Provider seam: `aclose` is idempotent, with and without a client."""
        provider = self.make(server.base_url)
        await provider.load()

        await provider.aclose()
        await provider.aclose()

        with pytest.raises(Disposed, match="under-test is closed"):
            await answer_of(provider, ask())
