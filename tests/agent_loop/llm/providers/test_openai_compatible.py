"""The OpenAI-compatible provider over a real connection: the provider suite, and what is its own."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, ClassVar

import httpx2
import pytest

from agent_loop.chunks import Chunk, Finish, TextDelta
from agent_loop.errors import ConfigError
from agent_loop.llm.providers import sdk_provider
from agent_loop.llm.providers.openai_compatible import OpenAICompatible
from agent_loop.messages import Message, Reasoning, Text, ToolCallBlock, ToolResultBlock
from tests.agent_loop.llm.provider_suite import (
    KEY,
    WAIT_S,
    WHOLE,
    WHOLE_CONTENT,
    ProviderSuite,
    answer_of,
    ask,
    failure_of,
)
from tests.doubles import openai_wire
from tests.doubles.openai_wire import DONE, data_of, event_of
from tests.doubles.provider_server import Reply, provider_server

ERRORS = {
    "auth": ("invalid_api_key", "invalid_request_error"),
    "rate_limit": ("rate_limit_exceeded", "requests"),
    "context_too_long": ("context_length_exceeded", "invalid_request_error"),
    "invalid_request": (None, "invalid_request_error"),
    "model_not_found": ("model_not_found", "invalid_request_error"),
    "server": (None, "server_error"),
    "overloaded": (None, "overloaded"),
    "forbidden": (None, "forbidden"),
    "quota": ("insufficient_quota", "insufficient_quota"),
    "timeout": (None, "timeout"),
    "too_large": (None, "invalid_request_error"),
    "content_filtered": ("content_filter", "invalid_request_error"),
}

HELLO: Sequence[Chunk] = (TextDelta(0, "hello"), Finish("stop"))


class OpenAIWire:
    path = "/chat/completions"
    models_path = "/v1/models"
    thinks_hard: ClassVar[Mapping[str, Any]] = {"reasoning_effort": "high"}
    events_of = staticmethod(openai_wire.events_of)
    problem = staticmethod(openai_wire.problem)

    def error_body(self, kind: str, message: str) -> bytes:
        code, category = ERRORS[kind]
        return openai_wire.error_body(code, message, category)

    def error_event(self, kind: str, message: str) -> bytes:
        return data_of(self.error_body(kind, message).decode())

    def without_marks(self, body: bytes) -> bytes:
        return body


class TestOpenAICompatible(ProviderSuite):
    wire = OpenAIWire()
    construction = f"{OpenAICompatible.__module__}:OpenAICompatible('x', 'http://127.0.0.1:9/v1', None)"

    def make(self, base_url: str, idle_timeout_s: float = WAIT_S) -> OpenAICompatible:
        return OpenAICompatible("under-test", base_url, KEY, idle_timeout_s)


def make(base_url: str, api_key: str | None = KEY, idle_timeout_s: float = WAIT_S) -> OpenAICompatible:
    return OpenAICompatible("under-test", base_url, api_key, idle_timeout_s)


@pytest.mark.parametrize("chunked", [True, False], ids=["chunked", "until-closed"])
async def test_a_finished_answer_needs_no_done_mark(chunked: bool) -> None:
    """Local servers leave `[DONE]` out; the finish reason is what tells a whole answer from a cut one."""
    async with provider_server() as server, aclosing(make(server.base_url)) as provider:
        server.plan(Reply(openai_wire.events_of(WHOLE, done=False), chunked=chunked))

        answer = await answer_of(provider, ask())

        assert answer.content() == WHOLE_CONTENT


async def test_a_server_that_crashes_after_its_finish_reason_has_said_everything() -> None:
    """Our promise: an answer that was paid for and is whole is not asked for again."""
    async with provider_server() as server, aclosing(make(server.base_url)) as provider:
        events = openai_wire.events_of(HELLO)
        server.plan(Reply(events, cut_after=len(events) - 1))

        answer = await answer_of(provider, ask())

        assert answer.finish == Finish("stop")


@pytest.mark.parametrize("after", ["silence", "a cut"])
async def test_what_follows_the_done_mark_cannot_spoil_or_hold_up_an_answer(
    after: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spike, trap 16: read on, with a bound."""
    monkeypatch.setattr(sdk_provider, "DRAIN_S", 0.05)

    async with provider_server() as server, aclosing(make(server.base_url)) as provider:
        events = [*openai_wire.events_of(HELLO), event_of(delta={"content": "late"})]
        if after == "silence":
            server.plan(Reply(events, silent_after=len(events)))
        else:
            server.plan(Reply(events, cut_after=len(events)))

        answer = await answer_of(provider, ask())

        assert (answer.content(), answer.finish) == ((Text("hello"),), Finish("stop"))


async def test_the_last_event_needs_no_blank_line() -> None:
    """Local servers close right after the last line."""
    async with provider_server() as server, aclosing(make(server.base_url)) as provider:
        finish = event_of(delta={"content": "a"}, finish_reason="stop")
        server.plan(Reply([finish], line_end=b"", chunked=False))

        answer = await answer_of(provider, ask())

        assert (answer.content(), answer.finish) == ((Text("a"),), Finish("stop"))


async def test_what_a_gateway_signed_goes_back_to_it() -> None:
    """OpenRouter, preserving reasoning blocks: a call is refused whose thought has lost its signature."""
    signed = {"type": "reasoning.encrypted", "data": "x", "index": 0}
    call = {"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}

    async with provider_server(openai_wire.problem) as server, aclosing(make(server.base_url)) as provider:
        thought = event_of(delta={"reasoning": "hm", "reasoning_details": [signed]})
        finish = event_of(delta={"tool_calls": [call]}, finish_reason="tool_calls")
        processing = b": OPENROUTER PROCESSING"
        server.plan(Reply([processing, thought, processing, finish]), Reply(openai_wire.events_of(HELLO)))
        first = await answer_of(provider, ask())
        result = Message("user", (ToolResultBlock("c1", (Text("A"),)),))
        answered = (*ask().messages, Message("assistant", first.content()), result)

        await answer_of(provider, replace(ask(), messages=answered))

        returned = server.requests[1].body["messages"][-2]
        assert (returned["reasoning_content"], returned["reasoning_details"]) == ("hm", [signed])


async def test_an_error_in_the_middle_keeps_what_came_before() -> None:
    """Gateways report an upstream that died as an event of a stream with status 200."""
    async with provider_server() as server, aclosing(make(server.base_url)) as provider:
        error = data_of('{"error": {"code": 502, "message": "Upstream died"}}')
        server.plan(Reply([event_of(delta={"content": "Hel"}), error, DONE]))

        failure, answer = await failure_of(provider, ask())

        assert (failure.kind, failure.status, answer.content()) == ("server", 502, (Text("Hel"),))
        assert (
            str(failure) == "under-test failed on its side (502) in the middle of the answer: Upstream died"
        )


async def test_an_endpoint_without_a_key_gets_none_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Our promise: what the environment holds for OpenAI is never sent to somebody else."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-openai")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "Authorization: Bearer secret")

    async with provider_server() as server, aclosing(make(server.base_url, api_key=None)) as provider:
        server.plan(Reply(openai_wire.events_of(HELLO)))

        await answer_of(provider, ask())

        (request,) = server.requests
        assert not [value for value in request.headers.values() if "secret" in value]
        assert "authorization" not in request.headers


async def test_openai_itself_hears_of_the_organisation_and_gets_no_thoughts_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OpenAI, authentication: the organisation is in the environment; unknown fields are refused."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    sent: list[httpx2.Request] = []

    async def refuse(_: object, request: httpx2.Request, **__: object) -> httpx2.Response:
        sent.append(request)
        return httpx2.Response(503, request=request)

    monkeypatch.setattr("httpx2.AsyncClient.send", refuse)
    thought = Message("assistant", (Reasoning("hm"), ToolCallBlock("c1", "read", "{}")))

    async with aclosing(make("https://api.openai.com/v1")) as provider:
        await failure_of(provider, replace(ask(), messages=(thought,)))

    assert sent[0].headers["openai-organization"] == "org-1"
    assert b"reasoning_content" not in sent[0].content


async def test_a_missing_key_is_called_missing() -> None:
    """Contract 5: an error names what to mend."""
    async with provider_server() as server, aclosing(make(server.base_url, api_key="  ")) as provider:
        server.plan(Reply(status=401, body=openai_wire.error_body(None, "Unauthorized")))

        failure, _ = await failure_of(provider, ask())

        assert str(failure) == "under-test wants a key and none is set (401): Unauthorized"


@pytest.mark.parametrize("base_url", ["", "localhost:8080/v1", "ftp://host/v1", "http:///v1"])
def test_an_address_that_is_none_is_refused_at_once(base_url: str) -> None:
    """Contract 11: settings at fault are named."""
    with pytest.raises(ConfigError, match="base_url of x must begin with http"):
        OpenAICompatible("x", base_url, None)


@pytest.mark.parametrize("key", ["sk-1\nX-Evil: 1", "sk-é", "two words"])
def test_a_key_that_cannot_be_one_is_refused_without_being_shown(key: str) -> None:
    """The HTTP client would put the whole header into its error."""
    with pytest.raises(ConfigError, match="the key for x has a blank") as caught:
        OpenAICompatible("x", "http://host/v1", key)

    assert key not in str(caught.value)
