"""Events of the many servers that speak OpenAI's format, as chunks."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.chunks import (
    BlockEnd,
    Chunk,
    Finish,
    FinishKind,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from agent_loop.errors import ErrorKind, ProviderError
from agent_loop.llm.collect import Collector
from agent_loop.llm.providers.endpoint import Endpoint
from agent_loop.llm.providers.openai_stream import OpenAIAnswer, usage_in
from agent_loop.messages import Reasoning, ToolCallBlock

ENDPOINT = Endpoint("fake", "http://host/v1", None, 120.0)
STOP = {"choices": [{"delta": {}, "finish_reason": "stop"}]}


def chunks_of(*values: Any) -> list[Chunk]:
    """The chunks of a whole answer made of these events."""
    answer = OpenAIAnswer(ENDPOINT)
    chunks = [chunk for value in values for chunk in answer.feed(json.dumps(value).encode())]
    return [*chunks, *answer.ending()]


def delta(**fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def call(**fields: Any) -> dict[str, Any]:
    """An event with one piece of one tool call."""
    return delta(tool_calls=[fields])


def calls_of(*values: Any) -> list[tuple[str, str, str]]:
    collector = Collector()
    for chunk in chunks_of(*values, STOP):
        collector.add(chunk)
    return [(b.id, b.name, b.arguments) for b in collector.content() if isinstance(b, ToolCallBlock)]


@pytest.mark.parametrize(
    ("events", "chunks"),
    [
        ([delta(content="a"), delta(content="b")], [TextDelta(0, "a"), TextDelta(0, "b")]),
        ([delta(role="assistant", content=""), delta(content=None)], []),
        ([delta(reasoning_content="r"), delta(content="a")], [ReasoningDelta(0, "r"), TextDelta(1, "a")]),
        ([delta(reasoning="r", content="")], [ReasoningDelta(0, "r")]),
        ([delta(reasoning_content="r", reasoning="r")], [ReasoningDelta(0, "r")]),
        ([delta(reasoning_content="", content="a")], [TextDelta(0, "a")]),
        ([delta(reasoning_content="r", content="a")], [ReasoningDelta(0, "r"), TextDelta(1, "a")]),
        (
            [delta(content="a"), delta(reasoning="r"), delta(content="b")],
            [TextDelta(0, "a"), ReasoningDelta(1, "r"), TextDelta(2, "b")],
        ),
        (
            [delta(content="a"), call(index=0, id="c", function={"name": "t"}), delta(content="b")],
            [TextDelta(0, "a"), ToolCallDelta(1, "c", "t", ""), TextDelta(2, "b")],
        ),
        ([{"choices": [{"delta": None}]}, {"choices": [{}]}, {"choices": None}, {}], []),
    ],
)
def test_deltas_become_chunks_of_the_right_blocks(events: list[Any], chunks: list[Chunk]) -> None:
    """DeepSeek `reasoning_content`, OpenRouter and Ollama `reasoning`, and fields that are empty or null."""
    assert chunks_of(*events, STOP)[:-1] == chunks


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        pytest.param(
            [
                call(index=0, id="a", type="function", function={"name": "t", "arguments": ""}),
                call(index=0, function={"arguments": '{"x"'}),
                call(index=0, function={"arguments": ":1}"}),
            ],
            [("a", "t", '{"x":1}')],
            id="OpenAI: id and name first, arguments in pieces",
        ),
        pytest.param(
            [
                call(index=0, id="a", function={"name": "t", "arguments": "{"}),
                call(index=1, id="b", function={"name": "u", "arguments": "["}),
                call(index=0, function={"arguments": "}"}),
                call(index=1, function={"arguments": "]"}),
            ],
            [("a", "t", "{}"), ("b", "u", "[]")],
            id="OpenAI: parallel calls, interleaved",
        ),
        pytest.param(
            [
                delta(
                    tool_calls=[
                        {"id": "a", "function": {"name": "t", "arguments": "{}"}},
                        {"id": "b", "function": {"name": "t", "arguments": "[]"}},
                    ]
                )
            ],
            [("a", "t", "{}"), ("b", "t", "[]")],
            id="Ollama: whole calls without index",
        ),
        pytest.param(
            [
                call(id="a", function={"name": "t", "arguments": "{"}),
                call(id="b", function={"name": "u", "arguments": "["}),
                call(id="a", function={"arguments": "}"}),
                call(id="b", function={"arguments": "]"}),
            ],
            [("a", "t", "{}"), ("b", "u", "[]")],
            id="by id alone",
        ),
        pytest.param(
            [
                delta(tool_calls=[{"function": {"name": "t"}}, {"function": {"name": "u"}}]),
                delta(tool_calls=[{"function": {"arguments": "{}"}}, {"function": {"arguments": "[]"}}]),
            ],
            [("call-0", "t", "{}"), ("call-1", "u", "[]")],
            id="by place alone",
        ),
        pytest.param(
            [
                call(function={"name": "t", "arguments": "{}"}),
                call(function={"name": "t", "arguments": "[]"}),
            ],
            [("call-0", "t", "{}"), ("call-1", "t", "[]")],
            id="nothing but names: each begins a call",
        ),
        pytest.param(
            [
                call(index=0, id="a", function={"name": "t", "arguments": "{}"}),
                call(index=0, id="b", function={"name": "t", "arguments": "[]"}),
                call(index=0, id="b", function={"arguments": " "}),
            ],
            [("a", "t", "{}"), ("b", "t", "[] ")],
            id="Gemini: index always 0, new id with a name",
        ),
        pytest.param(
            [
                call(index=0, id="a", function={"name": "t", "arguments": "{"}),
                call(index=0, id="another", function={"arguments": "}"}),
            ],
            [("a", "t", "{}")],
            id="vLLM: a new id in every piece",
        ),
        pytest.param(
            [
                call(index=0, id="a", function={"arguments": "{"}),
                call(index=0, id="a", function={"name": "t", "arguments": "}"}),
                call(index=0, id="a", function={"name": "t", "arguments": ""}),
            ],
            [("a", "t", "{}")],
            id="the name late, the id again and again",
        ),
        pytest.param(
            [call(index=0, function={"name": "t"}), call(index=0, id="a"), call(index=0)],
            [("a", "t", "")],
            id="the id late, no arguments at all",
        ),
        pytest.param(
            [call(index=0, id="a", function={"name": "t", "arguments": {"x": 1}})],
            [("a", "t", '{"x":1}')],
            id="arguments as an object",
        ),
        pytest.param(
            [
                call(index=0, id="a", function={"name": "t", "arguments": "{}"}),
                call(index=1, id="a", function={"name": "t", "arguments": "[]"}),
            ],
            [("a", "t", "{}"), ("a-2", "t", "[]")],
            id="one id for two calls",
        ),
        pytest.param(
            [
                call(id="a", function={"name": "t", "arguments": "{"}),
                call(function={"arguments": "}"}),
            ],
            [("a", "t", "{}")],
            id="id first, then only the place",
        ),
    ],
)
def test_pieces_of_tool_calls_find_their_call(events: list[Any], calls: list[tuple[str, str, str]]) -> None:
    """Public bug reports of OpenAI-compatible servers, one shape each."""
    assert calls_of(*events) == calls


@given(st.data())
def test_parallel_calls_survive_any_interleaving(data: st.DataObject) -> None:
    """OpenAI, streaming function calls: pieces are told apart by index."""
    texts = data.draw(st.lists(st.text(max_size=6), min_size=1, max_size=4))
    pieces = [
        (
            index,
            call(index=index, id=f"c{index}" if at == 0 else None, function={"name": "t", "arguments": char}),
        )
        for index, text in enumerate(texts)
        for at, char in enumerate(["", *text])
    ]
    order = data.draw(st.permutations([index for index, _ in pieces]))
    queues = {index: [event for at, event in pieces if at == index] for index, _ in pieces}

    found = calls_of(*(queues[index].pop(0) for index in order))

    assert sorted(found) == [(f"c{index}", "t", text) for index, text in enumerate(texts)]


@pytest.mark.parametrize(
    ("reason", "said", "finish"),
    [
        ("stop", {"content": "a"}, "stop"),
        ("length", {"content": "a"}, "max-tokens"),
        ("tool_calls", {"tool_calls": [{"index": 0, "id": "a"}]}, "tool-calls"),
        ("function_call", {"tool_calls": [{"index": 0, "id": "a"}]}, "tool-calls"),
        ("stop", {"tool_calls": [{"index": 0, "id": "a"}]}, "tool-calls"),
        ("tool_calls", {"content": "a"}, "stop"),
        ("refusal", {"content": "a"}, "refusal"),
        ("stop", {"refusal": "I will not."}, "refusal"),
        ("stop", {}, "stop"),
        ("eos_token", {"content": "a"}, "stop"),
        ("eos_token", {"tool_calls": [{"index": 0, "id": "a"}]}, "tool-calls"),
    ],
)
def test_a_finish_reason_becomes_ours(reason: str, said: dict[str, Any], finish: FinishKind) -> None:
    """Contract 8; an unknown reason beside an answer does no harm to it."""
    event = {"choices": [{"delta": said, "finish_reason": reason}]}

    assert chunks_of(event)[-1] == Finish(finish)


@pytest.mark.parametrize(
    ("reason", "said", "kind"),
    [
        ("content_filter", {"content": "a"}, "content_filtered"),
        ("error", {"content": "a"}, "server"),
        ("insufficient_system_resource", {}, "overloaded"),
        ("eos_token", {}, "unknown"),
        (None, {"content": "a"}, "transport"),
    ],
)
def test_a_finish_reason_may_be_a_failure(reason: str | None, said: dict[str, Any], kind: ErrorKind) -> None:
    """Contract 8: content_filter, gateways' `error`, DeepSeek's resource reason, and none at all."""
    with pytest.raises(ProviderError) as caught:
        chunks_of({"choices": [{"delta": said, "finish_reason": reason}]})

    assert (caught.value.kind, caught.value.provider) == (kind, "fake")


TEXT_PIECE = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}


@pytest.mark.parametrize(
    ("events", "chunks"),
    [
        pytest.param(
            [
                delta(reasoning="h", reasoning_details=[{**TEXT_PIECE, "text": "h", "signature": None}]),
                delta(reasoning="m", reasoning_details=[{**TEXT_PIECE, "text": "m"}]),
                delta(content="", reasoning_details=[{**TEXT_PIECE, "signature": "c2ln"}]),
                delta(content="a"),
            ],
            [
                ReasoningDelta(0, "h"),
                ReasoningDelta(0, "m"),
                TextDelta(1, "a"),
                BlockEnd(
                    0, opaque={"reasoning_details": ({**TEXT_PIECE, "text": "hm", "signature": "c2ln"},)}
                ),
            ],
            id="a signature behind the words",
        ),
        pytest.param(
            [
                delta(content="a"),
                delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "x", "id": "r1"}]),
                delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "y", "id": "r1"}]),
            ],
            [
                TextDelta(0, "a"),
                BlockEnd(
                    1,
                    Reasoning(
                        "",
                        {"reasoning_details": ({"type": "reasoning.encrypted", "data": "xy", "id": "r1"},)},
                    ),
                ),
            ],
            id="no words, and no index",
        ),
        pytest.param(
            [
                delta(reasoning_details=[{"type": "reasoning.summary", "summary": "In short"}]),
                delta(reasoning_details=[{**TEXT_PIECE, "text": ", hm"}]),
            ],
            [ReasoningDelta(0, "In short"), ReasoningDelta(0, ", hm")],
            id="words nowhere else, and nothing signed",
        ),
    ],
)
def test_details_are_gathered_for_whoever_signed_them(events: list[Any], chunks: list[Chunk]) -> None:
    """OpenRouter, preserving reasoning blocks: the list goes back unmodified beside tool calls."""
    assert chunks_of(*events, STOP)[:-1] == chunks


def test_details_that_are_no_lossless_json_are_malformed() -> None:
    """Our promise: nothing an endpoint sends comes out as an exception of some library."""
    deep: Any = "x"
    for _ in range(250):
        deep = [deep]

    with pytest.raises(ProviderError) as caught:
        chunks_of(delta(reasoning_details=[{"type": "x", "data": "y", "more": deep}]), STOP)

    assert caught.value.kind == "malformed"


def test_a_reason_beside_missing_choices_counts() -> None:
    """Gateways: the last event has an empty `choices`, and the reason at its top."""
    chunks = chunks_of(delta(content="a"), {"choices": [], "finish_reason": "length", "usage": None})

    assert chunks == [TextDelta(0, "a"), Finish("max-tokens")]


def test_an_error_beside_choices_is_an_error() -> None:
    """OpenRouter, errors during streaming: `error` at the top, and a choice that finishes with `error`."""
    event = {
        "error": {"code": 502, "message": "Provider disconnected"},
        "choices": [{"delta": {"content": ""}, "finish_reason": "error"}],
    }

    with pytest.raises(ProviderError) as caught:
        OpenAIAnswer(ENDPOINT).feed(json.dumps(event).encode())

    assert (caught.value.kind, caught.value.status) == ("server", 502)


def test_usage_comes_once_and_right_before_the_finish() -> None:
    """Servers send usage in every event, beside the last text, or after the finish reason."""
    early = {**delta(content="a"), "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    late = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}

    chunks = chunks_of(early, STOP, late, {"usage": None})

    assert chunks == [TextDelta(0, "a"), UsageChunk(Usage(5, 2)), Finish("stop")]


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14}, Usage(10, 4)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 9,
                "prompt_tokens_details": {"cached_tokens": 6},
                "completion_tokens_details": {"reasoning_tokens": 5},
            },
            Usage(4, 4, cache_read_tokens=6, reasoning_tokens=5),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 8}, Usage(2, 1, 8)),
        ({"prompt_tokens": None, "prompt_tokens_details": None, "completion_tokens": 0}, Usage()),
        (
            {"prompt_tokens": 1, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 3}},
            Usage(0, 1, 3),
        ),
    ],
)
def test_token_counts_are_disjoint(said: dict[str, Any], usage: Usage) -> None:
    """Loop specification 1.6: cached tokens are no input, reasoning is no output."""
    assert usage_in(said) == usage


@pytest.mark.parametrize(
    "event",
    [b"{", b"null", b"[]", b'"x"', b'{"choices": 1}', b'{"choices": ["x"]}', b"\xff\xfe", b"[" * 2000,
     b'{"choices": [{"delta": {"content": 5}}]}',
     b'{"choices": [{"delta": {"content": [{"type": "text"}]}}]}',
     b'{"choices": [{"delta": {"reasoning_details": ["x"]}}]}',
     b'{"choices": [{"delta": {"reasoning_details": [{"text": "no type"}]}}]}',
     b'{"choices": [{"delta": {"tool_calls": [null]}}]}',
     b'{"choices": [{"delta": {"tool_calls": [{"id": 7}]}}]}',
     b'{"choices": [{"delta": {"tool_calls": [{"index": [], "id": "a"}]}}]}'],
)  # fmt: skip
def test_an_event_that_makes_no_sense_is_malformed(event: bytes) -> None:
    """Our promise: nothing an endpoint sends comes out as an exception of some library."""
    with pytest.raises(ProviderError) as caught:
        OpenAIAnswer(ENDPOINT).feed(event)

    assert (caught.value.kind, str(caught.value)) == ("malformed", "fake sent an event that cannot be read")


@pytest.mark.parametrize("usage", ["many", {"prompt_tokens": "many"}, [1]])
def test_usage_that_makes_no_sense_is_malformed(usage: Any) -> None:
    """Our promise: the same for counts."""
    with pytest.raises(ProviderError) as caught:
        chunks_of(delta(content="a"), STOP, {"usage": usage})

    assert caught.value.kind == "malformed"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"error": {"code": 429, "message": "slow"}}, "rate_limit"),
        ({"error": {"type": "overloaded_error", "message": "busy"}}, "overloaded"),
        ({"error": {"code": "context_length_exceeded"}}, "context_too_long"),
        ({"error": "something broke"}, "server"),
        ({"object": "error", "message": "request timed out", "type": "internal"}, "timeout"),
        ({"error": {"message": "x", "type": "invalid_request_error"}}, "invalid_request"),
    ],
)
def test_an_error_event_is_told_by_code_type_or_words(error: Any, kind: ErrorKind) -> None:
    """OpenRouter, Anthropic's gateway, vLLM: the status was 200 already."""
    with pytest.raises(ProviderError) as caught:
        OpenAIAnswer(ENDPOINT).feed(json.dumps(error).encode())

    assert caught.value.kind == kind


def test_half_a_character_is_replaced_and_the_answer_goes_on() -> None:
    """Gateways that cut text between UTF-16 units send `\\ud83d` in one event and `\\ude42` in the next."""
    answer = OpenAIAnswer(ENDPOINT)

    chunks = answer.feed(b'{"choices": [{"delta": {"content": "hi \\ud83d", "n": 1}}]}')

    assert chunks == [TextDelta(0, "hi \N{REPLACEMENT CHARACTER}")]


def test_nothing_is_heard_after_the_done_mark() -> None:
    """OpenAI, streaming: `[DONE]` ends the answer."""
    answer = OpenAIAnswer(ENDPOINT)
    answer.feed(json.dumps(STOP).encode())
    answer.feed(b"[DONE]")

    assert (answer.done, answer.finished) == (True, True)
    assert answer.feed(json.dumps(delta(content="late")).encode()) == ()
    assert answer.ending() == (Finish("stop"),)
