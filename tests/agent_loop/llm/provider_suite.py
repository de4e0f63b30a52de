"""What every provider must do, whatever format it speaks: a test class inherits this and names its wire.

Owns the promises of the provider seam over a real HTTP connection. What only one format can say belongs
to that provider's own tests.
"""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.chunks import (
    Chunk,
    Finish,
    FinishKind,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from agent_loop.errors import ERROR_KINDS, Disposed, ErrorKind, ProviderError
from agent_loop.events.facts import EndReason
from agent_loop.llm.collect import Collector
from agent_loop.llm.models import ModelInfo
from agent_loop.llm.provider import ModelRequest, Provider, ToolSchema
from agent_loop.llm.providers.sdk_provider import SdkProvider
from agent_loop.loop.end_reason import failed
from agent_loop.messages import Content, Image, Message, Reasoning, Text, ToolCallBlock, ToolResultBlock
from agent_loop.record import replace
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
    (403, {}, "forbidden", "auth", None),
    (402, {}, "quota", "quota", None),
    (408, {}, "timeout", "timeout", None),
    (429, {}, "rate_limit", "rate_limit", None),
    (429, {"retry-after": "7"}, "rate_limit", "rate_limit", 7.0),
    (400, {}, "context_too_long", "context_too_long", None),
    (413, {}, "too_large", "context_too_long", None),
    (400, {}, "content_filtered", "content_filtered", None),
    (400, {}, "invalid_request", "invalid_request", None),
    (404, {}, "model_not_found", "model_not_found", None),
    (500, {}, "server", "server", None),
    (502, {}, "server", "server", None),
    (503, {}, "overloaded", "overloaded", None),
    (529, {}, "overloaded", "overloaded", None),
]


# Failures that are no refusal: each has a test of its own in the suite.
SEEN_ON_THE_WAY: set[ErrorKind] = {"transport", "malformed", "empty"}

FINISHES: Sequence[tuple[FinishKind, Sequence[Chunk]]] = (
    ("stop", [TextDelta(0, "a")]),
    ("tool-calls", [ToolCallDelta(0, "c1", "read", "{}")]),
    ("max-tokens", [TextDelta(0, "a")]),
    ("refusal", [TextDelta(0, "I will not.")]),
)


class Wire(Protocol):
    """A format, from the endpoint's side."""

    path: str
    models_path: str
    thinks_hard: ClassVar[Mapping[str, Any]]
    """What a request says besides when a model that thinks by effort is to think long."""

    def events_of(self, chunks: Sequence[Chunk]) -> list[bytes]:
        """The events that say these chunks."""

    def error_body(self, kind: str, message: str) -> bytes:
        """The body of an answer with an error status, of that kind."""

    def error_event(self, kind: str, message: str) -> bytes:
        """A failure of that kind as an event, in a stream that began well."""

    def problem(self, body: Any) -> str | None:
        """What the real endpoint would refuse about a request."""

    def without_marks(self, body: bytes) -> bytes:
        """A request's bytes less what only tells a cache how far to go."""


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
    construction: str
    """A program's expression that makes the provider, and the module it comes from: `MODULE:NAME(…)`."""

    def make(self, base_url: str, idle_timeout_s: float = WAIT_S) -> SdkProvider:
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

    @pytest.mark.parametrize(("kind", "said"), FINISHES)
    async def test_an_answer_ends_for_a_reason(
        self, server: ProviderServer, provider: Provider, kind: FinishKind, said: Sequence[Chunk]
    ) -> None:
        """Provider seam: one `Finish`, and counts only from endpoints that count."""
        server.plan(Reply(self.wire.events_of([*said, Finish(kind)])))

        answer = await answer_of(provider, ask())

        assert (answer.finish, len(answer.content())) == (Finish(kind), 1)
        assert answer.usage in (None, Usage())

    async def test_arguments_may_be_cut_anywhere(self, server: ProviderServer, provider: Provider) -> None:
        """Issue "Real models": providers split arguments inside escapes and keys."""
        arguments = '{"path": "a\\n\\u00e9 \\ud83d\\ude42🙂", "deep": [{}, null]}'
        pieces = [ToolCallDelta(0, "", "", char) for char in arguments]
        server.plan(
            Reply(
                self.wire.events_of([ToolCallDelta(0, "c1", "read", ""), *pieces, Finish("tool-calls")]),
                split=(5, 1, 17),
            )
        )

        answer = await answer_of(provider, ask())

        assert answer.content() == (ToolCallBlock("c1", "read", arguments),)

    async def test_an_id_that_is_used_again_stays_unique_in_the_session(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Contract 1: a repeat gets a suffix, and the endpoint takes the history that results."""
        twice = [ToolCallDelta(0, "c1", "read", "{}"), ToolCallDelta(1, "c1", "read", "[]")]
        server.plan(Reply(self.wire.events_of([*twice, Finish("tool-calls")])), *self._hello())

        first = await answer_of(provider, ask())
        results = (ToolResultBlock("c1", (Text("A"),)), ToolResultBlock("c1-2", (Text("B"),)))
        history = (*ask().messages, Message("assistant", first.content()), Message("user", results))
        second = await answer_of(provider, replace(ask(), messages=history))

        assert [block.id for block in first.content() if isinstance(block, ToolCallBlock)] == ["c1", "c1-2"]
        assert second.content() == (Text("hello"),)

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

    @pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "until-closed"])
    @pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
    async def test_an_answer_cut_at_any_place_is_a_failure_and_the_next_one_works(
        self, server: ProviderServer, provider: Provider, share: float, chunked: bool
    ) -> None:
        """Issue "Real models": cut at 0, 50 and 99 %; never an empty success."""
        events = self.wire.events_of(WHOLE)
        before_the_end = int((len(events) - 2) * share)
        server.plan(Reply(events, cut_after=before_the_end, chunked=chunked), Reply(events))

        error, _ = await failure_of(provider, ask())

        nothing_came = share == 0.0 and not chunked
        assert error.kind == ("empty" if nothing_came else "transport")
        assert (await answer_of(provider, ask())).content() == WHOLE_CONTENT

    async def test_a_burst_of_failures_leaves_nothing_behind(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Issue "Real models": no retry inside the SDK, and each failure is told as it comes."""
        statuses = (500, 503, 529, 429, 500)
        bad = [Reply(status=status, body=self.wire.error_body("server", "sorry")) for status in statuses]
        server.plan(*bad, Reply(self.wire.events_of(WHOLE)))

        seen = [(await failure_of(provider, ask()))[0].status for _ in statuses]

        assert (seen, len(server.requests)) == ([*statuses], 5)
        assert (await answer_of(provider, ask())).content() == WHOLE_CONTENT

    async def test_a_failure_in_the_middle_keeps_what_came_before(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Anthropic, errors: an overload may come after the status was 200; gateways do the same."""
        events = self.wire.events_of([TextDelta(0, "Hel"), Finish("stop")])[:-2]
        server.plan(Reply([*events, self.wire.error_event("overloaded", "busy")]))

        error, answer = await failure_of(provider, ask())

        assert (error.kind, error.provider, answer.shown) == ("overloaded", "under-test", True)
        assert str(error) == "under-test is overloaded in the middle of the answer: busy"

    @pytest.mark.parametrize(
        ("body", "kind"),
        [
            (b'{"error": {"message": "no", "type": "overloaded_error"}}', "overloaded"),
            (b'{"content": "not streamed"}', "malformed"),
            (b"<html>\n<p>Welcome!</p>\n</html>", "malformed"),
            (b"", "empty"),
            (b"[]", "malformed"),
        ],
    )
    async def test_an_answer_that_is_no_stream_is_explained(
        self, server: ProviderServer, provider: Provider, body: bytes, kind: ErrorKind
    ) -> None:
        """Users point base_url at web pages and at gateways that wrap errors in status 200."""
        server.plan(Reply(body=body))

        error, _ = await failure_of(provider, ask())

        assert (error.kind, error.provider) == (kind, "under-test")

    def test_every_kind_of_failure_is_tried(self) -> None:
        """Contract 5: the list is closed, and `unknown` is what no provider says of itself."""
        assert {kind for *_, kind, _ in REFUSALS} | SEEN_ON_THE_WAY == ERROR_KINDS - {"unknown"}

    async def test_silence_ends_in_a_timeout(self, server: ProviderServer) -> None:
        """Contract 8: an idle limit between reads."""
        provider = self.make(server.base_url, idle_timeout_s=0.1)
        server.plan(Reply(self.wire.events_of(WHOLE), silent_after=4))

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
        told = {"provider": "under-test", "status": status}
        assert failed(error) == EndReason(
            "error",
            error_kind=kind,
            message=str(error),
            data=told if wait_s is None else {**told, "retryAfter": wait_s},
        )

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

    async def test_a_request_begins_with_the_bytes_of_the_one_before(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Issue "Real models": requests are a stable prefix, so that the provider's cache hits."""
        server.plan(Reply(self.wire.events_of(WHOLE)), *self._hello(2))
        first = await answer_of(provider, ask())
        results = [ToolResultBlock(call, (Text("A"),)) for call in ("c1", "c2")]
        history = (
            *ask().messages,
            Message("assistant", first.content()),
            *[Message("user", (result,)) for result in results],
        )
        await answer_of(provider, replace(ask(), messages=history))
        history = (*history, Message("assistant", (Text("hello"),)), Message("user", (Text("and now?"),)))
        await answer_of(provider, replace(ask(), messages=history))

        bodies = [self.wire.without_marks(request.raw) for request in server.requests]

        for shorter, longer in pairwise(bodies):
            assert longer.startswith(shorter.removesuffix(b"]}"))

    async def test_a_picture_is_shown_to_the_model(self, server: ProviderServer, provider: Provider) -> None:
        """Issue "Real models": images in, from a person and from a tool."""
        server.plan(*self._hello())
        picture = Image("iVBORw0KGgo=", "image/png")
        calls = Message("assistant", (ToolCallBlock("c1", "read", "{}"),))
        result = Message("user", (ToolResultBlock("c1", (picture,)),))
        history = (Message("user", (Text("see"), picture)), calls, result)

        await answer_of(provider, replace(ask(), messages=history, info=ModelInfo(images=True)))

        assert server.requests[0].raw.count(picture.data.encode()) == 2

    async def test_a_model_that_sees_no_pictures_is_told_that_there_was_one(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Issue "Real models", vision flag: the session may have had a model that does, and goes on."""
        server.plan(*self._hello())
        history = (Message("user", (Text("see"), Image("iVBORw0KGgo=", "image/png"))),)

        await answer_of(provider, replace(ask(), messages=history))

        raw = server.requests[0].raw
        assert b"iVBORw0KGgo=" not in raw
        assert b"(a picture of type image/png, which you cannot be shown)" in raw

    async def test_what_is_chosen_of_a_models_thoughts_is_asked_for(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Issue "Real models", `thought_level`: in the format's own words, and only when somebody chose."""
        server.plan(*self._hello(2))

        await answer_of(provider, ask())
        await answer_of(provider, replace(ask(), info=ModelInfo(reasoning=True), thought="high"))

        without, high = (request.body for request in server.requests)
        added = {key: value for key, value in high.items() if key not in without}
        assert added == self.wire.thinks_hard

    async def test_the_endpoint_says_which_models_it_has(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Issue "Real models": live listing; in its own order, what is no name left out."""
        listed = {"data": [{"id": "m-2"}, {"id": "m-1", "object": "model"}, {"id": 3}, "m-4", {"id": ""}]}
        server.listing = Reply(body=json.dumps(listed).encode())

        assert await provider.models() == ("m-2", "m-1")

        assert server.questions[0].path.endswith(self.wire.models_path)

    @pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"models": []}'])
    async def test_something_else_than_a_list_of_models_is_said_to_be_that(
        self, body: bytes, server: ProviderServer, provider: Provider
    ) -> None:
        """Issue "Real models": every failure in words."""
        server.listing = Reply(body=body)

        with pytest.raises(ProviderError, match="something else than a list of its models"):
            await provider.models()

    async def test_an_endpoint_without_a_list_of_models_fails_in_words(
        self, server: ProviderServer, provider: Provider
    ) -> None:
        """Issue "Real models": bounded, and its failure is the provider's own kind of error."""
        with pytest.raises(ProviderError):
            await provider.models()

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

    def test_a_first_load_leaves_the_loop_free(self) -> None:
        """Spike, trap 17: the import once stopped everything, cancels too, for most of a second."""
        # Measuring coverage there would slow the import itself.
        plain = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
        program = [sys.executable, "-c", LAG_PROGRAM, *self.construction.split(":", 1)]

        done = subprocess.run(program, env=plain, capture_output=True, text=True, check=True, timeout=60)

        longest_gap_s, load_s = map(float, done.stdout.split())
        assert longest_gap_s < load_s / 2

    async def test_a_load_can_be_cancelled_and_done_again(self) -> None:
        """Spike, trap 17: a cancel during the import is answered at once."""
        provider = self.make("http://127.0.0.1:9/v1")
        provider._building.acquire()

        with anyio.move_on_after(0.01) as scope:
            await provider.load()

        assert scope.cancelled_caught
        provider._building.release()
        await provider.load()
        await provider.aclose()

    async def test_a_bug_of_ours_is_not_dressed_up_as_the_providers(
        self, server: ProviderServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Provider seam, rule 2: anything else is a bug, and rises."""
        server.plan(*self._hello())
        provider = self.make(server.base_url)
        await provider.load()
        assert provider._sdk is not None

        with monkeypatch.context() as patch:
            patch.setattr(provider._sdk.client, "post", _raise_bug)
            with pytest.raises(LookupError, match="bug"):
                await answer_of(provider, ask())

        with monkeypatch.context() as patch:
            patch.setattr("httpx2.Response.aiter_bytes", _bytes_with_bug)
            with pytest.raises(LookupError, match="bug"):
                await answer_of(provider, ask())

        await provider.aclose()

    def _hello(self, times: int = 1) -> list[Reply]:
        return [Reply(self.wire.events_of([TextDelta(0, "hello"), Finish("stop")]))] * times

    async def test_a_closed_provider_says_so(self, server: ProviderServer) -> None:
        """Provider seam: `aclose` is idempotent, with and without a client."""
        provider = self.make(server.base_url)
        await provider.load()

        await provider.aclose()
        await provider.aclose()

        with pytest.raises(Disposed, match="under-test is closed"):
            await answer_of(provider, ask())


LAG_PROGRAM = """
import sys
import time
from importlib import import_module
import anyio

module, expression = sys.argv[1:]
provider = eval(expression, vars(import_module(module)))

async def main():
    began, gaps = time.perf_counter(), []

    async def tick():
        last = began
        while True:
            await anyio.sleep(0.001)
            last, before = time.perf_counter(), last
            gaps.append(last - before)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await provider.load()
        group.cancel_scope.cancel()

    print(max(gaps), time.perf_counter() - began)

anyio.run(main)
"""


async def _raise_bug(*_: object, **__: object) -> None:
    raise LookupError("bug")


async def _bytes_with_bug(_: object):  # type: ignore[no-untyped-def]
    raise LookupError("bug")
    yield b""
