"""The Anthropic provider over a real connection: the provider suite, and what is its own."""

import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar

import pytest

from agent_loop.chunks import BlockEnd, Chunk, Finish, ReasoningDelta, TextDelta, ToolCallDelta
from agent_loop.errors import ConfigError
from agent_loop.llm.models import ModelInfo
from agent_loop.llm.providers.anthropic_messages import MAX_TOKENS, Anthropic
from agent_loop.llm.providers.anthropic_request import Thinking
from agent_loop.messages import Message, Reasoning, Text, ToolCallBlock, ToolResultBlock
from agent_loop.record import replace
from tests.agent_loop.llm.provider_suite import KEY, WAIT_S, WHOLE, ProviderSuite, answer_of, ask, failure_of
from tests.doubles import anthropic_wire
from tests.doubles.provider_server import Reply, provider_server

ERRORS = {
    "auth": "authentication_error",
    "forbidden": "permission_error",
    "quota": "billing_error",
    "timeout": "timeout_error",
    "rate_limit": "rate_limit_error",
    "context_too_long": "invalid_request_error",
    "too_large": "request_too_large",
    "content_filtered": "invalid_request_error",
    "invalid_request": "invalid_request_error",
    "model_not_found": "not_found_error",
    "server": "api_error",
    "overloaded": "overloaded_error",
}

# The API has one type for many failures, so that the words must tell.
WORDS = {
    "context_too_long": "prompt is too long: 205000 tokens > 200000 maximum, ",
    "content_filtered": "Output blocked by content filtering policy, ",
    "model_not_found": "model: m-1, ",
}

MARK = b',"cache_control":{"type":"ephemeral"}'
HELLO: Sequence[Chunk] = (TextDelta(0, "hello"), Finish("stop"))
THINKING = Reasoning("Which file?", {"signature": "c2lnbmVk"})
REDACTED = Reasoning("", {"redacted_thinking": "c2VjcmV0"})
CALL = ToolCallBlock("c1", "read", '{"path": "a"}')
THOUGHT: Sequence[Chunk] = (
    ReasoningDelta(0, "Which "),
    ReasoningDelta(0, "file?"),
    BlockEnd(0, opaque=THINKING.opaque),
    BlockEnd(1, REDACTED),
    ToolCallDelta(2, "c1", "read", '{"path": "a"}'),
    Finish("tool-calls"),
)


class AnthropicWire:
    path = "/messages"
    models_path = "/v1/models?limit=1000"
    thinks_hard: ClassVar[Mapping[str, Any]] = {
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": {"effort": "high"},
    }
    events_of = staticmethod(anthropic_wire.events_of)
    problem = staticmethod(anthropic_wire.problem)

    def error_body(self, kind: str, message: str) -> bytes:
        return anthropic_wire.error_body(ERRORS[kind], WORDS.get(kind, "") + message)

    def error_event(self, kind: str, message: str) -> bytes:
        return b"event: error\ndata: " + self.error_body(kind, message)

    def without_marks(self, body: bytes) -> bytes:
        return body.replace(MARK, b"")


class TestAnthropic(ProviderSuite):
    wire = AnthropicWire()
    construction = f"{Anthropic.__module__}:Anthropic('x', 'http://127.0.0.1:9', None)"

    def make(self, base_url: str, idle_timeout_s: float = WAIT_S) -> Anthropic:
        return make(base_url, idle_timeout_s=idle_timeout_s)


def make(
    base_url: str,
    api_key: str | None = KEY,
    idle_timeout_s: float = WAIT_S,
    max_tokens: int | None = None,
    thinking: Thinking | None = None,
) -> Anthropic:
    return Anthropic(
        "under-test", base_url, api_key, idle_timeout_s, max_tokens=max_tokens, thinking=thinking
    )


async def test_thoughts_go_back_as_they_came() -> None:
    """Anthropic, extended thinking: the blocks before a call return with the result, unmodified, in order."""
    async with (
        provider_server(anthropic_wire.problem) as server,
        aclosing(make(server.base_url, thinking=2048)) as provider,
    ):
        server.plan(Reply(anthropic_wire.events_of(THOUGHT)), Reply(anthropic_wire.events_of(HELLO)))
        first = await answer_of(provider, ask())
        result = Message("user", (ToolResultBlock("c1", (Text("A"),)),))
        answered = (*ask().messages, Message("assistant", first.content()), result)

        await answer_of(provider, replace(ask(), messages=answered))

        assert first.content() == (THINKING, REDACTED, CALL)
        assert server.requests[1].body["messages"][1]["content"] == [
            {"type": "thinking", "thinking": "Which file?", "signature": "c2lnbmVk"},
            {"type": "redacted_thinking", "data": "c2VjcmV0"},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}},
        ]


REFUSED_THOUGHTS = [
    "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different one.",
    "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the last message cannot be modified.",
    "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
]


@pytest.mark.parametrize("words", REFUSED_THOUGHTS)
async def test_refused_thoughts_do_not_end_a_session(words: str) -> None:
    """Public bug reports: a resumed session whose thoughts are refused fails at every later prompt."""
    refusal = Reply(status=400, body=anthropic_wire.error_body("invalid_request_error", words))
    history = (*ask().messages, Message("assistant", (THINKING, Text("so"))), *ask("and?").messages)
    later = (*history, Message("assistant", (THINKING, Text("then"))), *ask("and?").messages)

    async with provider_server(anthropic_wire.problem) as server, aclosing(make(server.base_url)) as provider:
        server.plan(refusal, *[Reply(anthropic_wire.events_of(HELLO))] * 2)

        answer = await answer_of(provider, replace(ask(), messages=history))
        await answer_of(provider, replace(ask(), messages=later))

        sent = [
            [block["type"] for message in request.body["messages"] for block in message["content"]]
            for request in server.requests
        ]
        assert answer.finish == Finish("stop")
        assert sent == [
            ["text", "thinking", "text", "text"],
            ["text", "text", "text"],
            ["text", "text", "text", "thinking", "text", "text"],
        ]


@pytest.mark.parametrize(
    ("status", "words", "said"),
    [
        (400, REFUSED_THOUGHTS[0], Text("no thought of ours")),
        (400, "thinking.type.enabled is not supported for this model", THINKING),
        (403, "the signature of the request is wrong", THINKING),
    ],
)
async def test_other_refusals_are_told_at_once(status: int, words: str, said: Reasoning | Text) -> None:
    """Our promise: a request is not sent twice in the hope that it helps."""
    history = (*ask().messages, Message("assistant", (said, Text("so"))), *ask("and?").messages)

    async with provider_server() as server, aclosing(make(server.base_url)) as provider:
        server.plan(Reply(status=status, body=anthropic_wire.error_body("invalid_request_error", words)))

        error, _ = await failure_of(provider, replace(ask(), messages=history))

        assert (error.status, words in str(error), len(server.requests)) == (status, True, 1)


async def test_an_answer_without_message_stop_is_cut() -> None:
    """Anthropic, streaming: `message_stop` is the last event of every whole answer."""
    async with provider_server() as server, aclosing(make(server.base_url)) as provider:
        server.plan(Reply(anthropic_wire.events_of(WHOLE, stop=False)))

        error, answer = await failure_of(provider, ask())

        assert (error.kind, answer.finish) == ("transport", None)


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
async def test_an_address_may_end_like_those_of_other_formats(suffix: str) -> None:
    """Our promise: people write base URLs with `/v1` because every other format has it."""
    async with provider_server() as server:
        async with aclosing(make(server.base_url.removesuffix("/v1") + suffix)) as provider:
            server.plan(Reply(anthropic_wire.events_of(HELLO)))

            await answer_of(provider, ask())

        assert server.requests[0].path == "/v1/messages"


async def test_an_endpoint_without_a_key_gets_none_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Our promise: what the environment holds for Anthropic is never sent to somebody else."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-secret")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "secret-token")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/secret")
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "Authorization: Bearer secret\nX-Api-Key: secret")

    async with provider_server() as server, aclosing(make(server.base_url, api_key=None)) as provider:
        server.plan(Reply(anthropic_wire.events_of(HELLO)))

        await answer_of(provider, ask())

        (request,) = server.requests
        assert not [value for value in request.headers.values() if "secret" in value]
        assert not {"authorization", "x-api-key"} & set(request.headers)
        assert request.headers["anthropic-version"]


async def test_how_long_to_answer_and_to_think_is_said() -> None:
    """Anthropic, Messages: `max_tokens` is required, and what is thought counts in it."""
    async with provider_server(anthropic_wire.problem) as server:
        for max_tokens, thinking in ((None, None), (None, 4096), (5000, 4096)):
            async with aclosing(make(server.base_url, max_tokens=max_tokens, thinking=thinking)) as provider:
                server.plan(Reply(anthropic_wire.events_of(HELLO)))
                await answer_of(provider, ask())

        said = [(request.body["max_tokens"], request.body.get("thinking")) for request in server.requests]

    budget = {"type": "enabled", "budget_tokens": 4096}
    assert said == [(MAX_TOKENS, None), (MAX_TOKENS + 4096, budget), (5000, budget)]


@pytest.mark.parametrize(
    ("info", "settings", "asked"),
    [
        (ModelInfo(max_output=64_000), None, (64_000, {"type": "enabled", "budget_tokens": 24_576})),
        (ModelInfo(), None, (MAX_TOKENS + 24_576, {"type": "enabled", "budget_tokens": 24_576})),
        (ModelInfo(max_output=64_000), 8_000, (8_000, {"type": "enabled", "budget_tokens": 4_000})),
        (ModelInfo(max_output=64_000), 2_000, (2_000, None)),
    ],
)
async def test_an_older_model_is_told_a_number_of_tokens_that_leaves_room_for_the_answer(
    info: ModelInfo, settings: int | None, asked: tuple[int, Any]
) -> None:
    """Anthropic, extended thinking: a budget from 1024 on, less than max_tokens, which the model bounds."""
    request = replace(ask(), info=replace(info, reasoning=True, thinks_by="budget"), thought="high")
    async with (
        provider_server(anthropic_wire.problem) as server,
        aclosing(make(server.base_url, max_tokens=settings)) as provider,
    ):
        server.plan(Reply(anthropic_wire.events_of(HELLO)))
        await answer_of(provider, request)

        body = server.requests[0].body
        assert (body["max_tokens"], body.get("thinking"), body.get("output_config")) == (*asked, None)


def test_thinking_that_leaves_no_answer_is_refused_at_once() -> None:
    """Anthropic, extended thinking: the budget must be less than max_tokens."""
    with pytest.raises(ConfigError, match="deep: thinking must be less than max_tokens, which is 4096"):
        Anthropic("deep", "https://host", None, max_tokens=4096, thinking=4096)


def test_without_the_sdk_the_person_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our promise: an extra that is not installed is no traceback."""
    monkeypatch.setitem(sys.modules, "anthropic", None)

    with pytest.raises(
        ConfigError, match=r"claude needs a package .*: pip install 'acp-agent-server\[anthropic\]'"
    ):
        Anthropic("claude", "https://host", None)
