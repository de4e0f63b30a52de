"""Events of Anthropic's Messages API, as chunks."""

import json
from typing import Any

import pytest

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
from agent_loop.llm.providers.anthropic_stream import AnthropicAnswer, usage_in
from agent_loop.llm.providers.endpoint import Endpoint
from agent_loop.messages import Reasoning
from tests.doubles.anthropic_wire import end_of, event_of, start_of

ENDPOINT = Endpoint("fake", "http://host", None, 120.0)
STOP = {"type": "message_stop"}
SIGNED = {"signature": "c2ln"}


def chunks_of(*values: Any) -> list[Chunk]:
    """The chunks of a whole answer made of these events, without its end."""
    answer = AnthropicAnswer(ENDPOINT)
    chunks = [chunk for value in values for chunk in answer.feed(json.dumps(value).encode())]
    answer.feed(json.dumps(STOP).encode())
    return [*chunks, *answer.ending()][: len(chunks)]


def begin(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}}


def delta(index: Any, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def text(index: int, said: str) -> dict[str, Any]:
    return delta(index, "text_delta", text=said)


def end(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


@pytest.mark.parametrize(
    ("events", "chunks"),
    [
        pytest.param(
            [begin(0, "text", text=""), text(0, "a"), text(0, ""), text(0, "b"), end(0)],
            [TextDelta(0, "a"), TextDelta(0, "b")],
            id="text",
        ),
        pytest.param(
            [begin(0, "text", text="a"), text(0, "b")],
            [TextDelta(0, "a"), TextDelta(0, "b")],
            id="text at once",
        ),
        pytest.param(
            [
                begin(0, "thinking", thinking="", signature=""),
                delta(0, "thinking_delta", thinking="h"),
                delta(0, "thinking_delta", thinking="m"),
                delta(0, "signature_delta", signature="c2"),
                delta(0, "signature_delta", signature="ln"),
                end(0),
                begin(1, "text", text=""),
                text(1, "a"),
            ],
            [ReasoningDelta(0, "h"), ReasoningDelta(0, "m"), BlockEnd(0, opaque=SIGNED), TextDelta(1, "a")],
            id="a signed thought",
        ),
        pytest.param(
            [begin(0, "thinking"), delta(0, "thinking_delta", thinking="hm"), end(0)],
            [ReasoningDelta(0, "hm")],
            id="a local server signs nothing",
        ),
        pytest.param(
            [begin(0, "thinking", thinking=""), delta(0, "signature_delta", signature="c2ln"), end(0)],
            [BlockEnd(0, Reasoning("", SIGNED))],
            id="a thought that is not shown",
        ),
        pytest.param(
            [begin(0, "thinking", thinking="hm", signature="c2ln"), end(0)],
            [ReasoningDelta(0, "hm"), BlockEnd(0, opaque=SIGNED)],
            id="a thought at once",
        ),
        pytest.param(
            [begin(0, "redacted_thinking", data="x"), end(0)],
            [BlockEnd(0, Reasoning("", {"redacted_thinking": "x"}))],
            id="a redacted thought",
        ),
        pytest.param(
            [
                begin(0, "tool_use", id="a", name="t", input={}),
                delta(0, "input_json_delta", partial_json=""),
                delta(0, "input_json_delta", partial_json='{"x"'),
                delta(0, "input_json_delta", partial_json=":1}"),
                end(0),
            ],
            [
                ToolCallDelta(0, "a", "t", ""),
                ToolCallDelta(0, "", "", '{"x"'),
                ToolCallDelta(0, "", "", ":1}"),
            ],
            id="a tool call",
        ),
        pytest.param(
            [begin(0, "tool_use", id="a", name="t", input={"x": 1}), end(0)],
            [ToolCallDelta(0, "a", "t", ""), ToolCallDelta(0, "", "", '{"x":1}')],
            id="arguments at once",
        ),
        pytest.param(
            [
                begin(0, "tool_use", id="a", name="t", input={"x": 0}),
                delta(0, "input_json_delta", partial_json='{"x":1}'),
                end(0),
            ],
            [ToolCallDelta(0, "a", "t", ""), ToolCallDelta(0, "", "", '{"x":1}')],
            id="arguments twice",
        ),
        pytest.param(
            [
                {"type": "ping"},
                {"type": "a_new_event", "index": 0},
                begin(0, "server_tool_use", id="s", name="web_search", input={}),
                delta(0, "input_json_delta", partial_json='{"q":1}'),
                end(0),
                begin(1, "text", text=""),
                delta(1, "citations_delta", citation={}),
                text(1, "a"),
                end(9),
            ],
            [TextDelta(1, "a")],
            id="what nobody here asked for",
        ),
    ],
)
def test_events_become_chunks(events: list[Any], chunks: list[Chunk]) -> None:
    """Anthropic, streaming messages: blocks, their deltas, and events yet to come."""
    assert chunks_of(*events, text(8, "end"))[:-1] == chunks


@pytest.mark.parametrize(
    ("reason", "said", "finish"),
    [
        ("end_turn", "text", "stop"),
        ("stop_sequence", "text", "stop"),
        ("pause_turn", "text", "stop"),
        ("tool_use", "tool", "tool-calls"),
        ("end_turn", "tool", "tool-calls"),
        ("tool_use", "text", "stop"),
        ("max_tokens", "tool", "max-tokens"),
        ("model_context_window_exceeded", "text", "max-tokens"),
        ("refusal", "text", "refusal"),
        ("refusal", "", "refusal"),
        ("end_turn", "", "stop"),
        ("a_new_reason", "text", "stop"),
        ("a_new_reason", "tool", "tool-calls"),
        (None, "text", "stop"),
    ],
)
def test_a_stop_reason_becomes_ours(reason: str | None, said: str, finish: FinishKind) -> None:
    """Anthropic, handling stop reasons; an unknown one beside an answer does no harm to it."""
    answer = AnthropicAnswer(ENDPOINT)
    events = {"text": [text(0, "a")], "tool": [begin(0, "tool_use", id="a", name="t")], "": []}[said]
    for event in events:
        answer.feed(json.dumps(event).encode())
    answer.feed(end_of(reason, Usage()).partition(b"data: ")[2])
    answer.feed(json.dumps(STOP).encode())

    assert answer.ending()[-1] == Finish(finish)


@pytest.mark.parametrize("reason", ["a_new_reason", None])
def test_no_answer_for_a_reason_nobody_knows_is_a_failure(reason: str | None) -> None:
    """Our promise: never an empty success."""
    answer = AnthropicAnswer(ENDPOINT)
    answer.feed(end_of(reason, Usage()).partition(b"data: ")[2])
    answer.feed(json.dumps(STOP).encode())

    with pytest.raises(ProviderError) as caught:
        answer.ending()

    assert str(caught.value) == f"fake gave no answer, for the reason {reason or ''!r}"
    assert (caught.value.kind, caught.value.provider) == ("unknown", "fake")


def test_usage_is_the_last_total_of_each_count_and_comes_right_before_the_finish() -> None:
    """Anthropic, streaming: what was read comes first, what was written last, and totals only grow."""
    answer = AnthropicAnswer(ENDPOINT)
    read = Usage(input_tokens=9, output_tokens=1, cache_read_tokens=20, cache_write_tokens=5)
    late = event_of("message_delta", delta={}, usage={"input_tokens": 0, "output_tokens": 12})

    for event in (start_of(read), end_of("end_turn", Usage(output_tokens=4)), late):
        answer.feed(event.partition(b"data: ")[2])
    answer.feed(json.dumps(STOP).encode())

    assert answer.ending() == (UsageChunk(Usage(9, 12, 20, 5)), Finish("stop"))


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({}, Usage()),
        ({"input_tokens": 3, "output_tokens": 4, "output_tokens_details": None}, Usage(3, 4)),
        (
            {"output_tokens": 9, "output_tokens_details": {"thinking_tokens": 5}},
            Usage(0, 4, reasoning_tokens=5),
        ),
        ({"output_tokens": 1, "output_tokens_details": {"thinking_tokens": 5}}, Usage(reasoning_tokens=5)),
        (
            {"input_tokens": 1, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 3},
            Usage(1, 0, cache_read_tokens=2, cache_write_tokens=3),
        ),
    ],
)
def test_token_counts_are_disjoint(said: dict[str, Any], usage: Usage) -> None:
    """Loop specification 1.6: Anthropic's are but for thoughts, which it counts as output."""
    assert usage_in(said) == usage


@pytest.mark.parametrize("usage", [{"input_tokens": "many"}, {"output_tokens_details": 3}])
def test_usage_that_makes_no_sense_is_malformed(usage: Any) -> None:
    """Our promise: nothing an endpoint sends comes out as an exception of some library."""
    with pytest.raises(ProviderError) as caught:
        chunks_of({"type": "message_start", "message": {"usage": usage}}, text(0, "a"))

    assert caught.value.kind == "malformed"


@pytest.mark.parametrize(
    "event",
    [
        b"{",
        b"null",
        b"[]",
        b'"x"',
        b"{}",
        b"\xff\xfe",
        b"[" * 2000,
        *(
            json.dumps(event).encode()
            for event in [
                delta("0", "text_delta", text="a"),
                {"type": "content_block_delta", "index": 0},
                delta(0, "text_delta", text=5),
                delta(0, "thinking_delta", thinking=[]),
                begin(0, "tool_use", id=7, name="t"),
                begin(0, "redacted_thinking"),
                begin(True, "text"),
                {"type": "message_start"},
                {"type": "message_delta", "delta": {"stop_reason": 5}},
                {"type": "message_delta", "delta": {}, "usage": 5},
                {"type": "error"},
            ]
        ),
    ],
)
def test_an_event_that_makes_no_sense_is_malformed(event: bytes) -> None:
    """Our promise: the same for events."""
    with pytest.raises(ProviderError) as caught:
        AnthropicAnswer(ENDPOINT).feed(event)

    assert (caught.value.kind, str(caught.value)) == ("malformed", "fake sent an event that cannot be read")


def test_a_tool_call_that_thinks_is_malformed() -> None:
    """Our promise: the same for events that make no sense together."""
    answer = AnthropicAnswer(ENDPOINT)
    answer.feed(json.dumps(begin(0, "tool_use", id="a", name="t")).encode())

    with pytest.raises(ProviderError, match="cannot be read"):
        answer.feed(json.dumps(delta(0, "thinking_delta", thinking="hm")).encode())


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded"),
        ({"type": "rate_limit_error", "message": "slow"}, "rate_limit"),
        ({"type": "authentication_error", "message": "no"}, "auth"),
        ({"type": "permission_error", "message": "no"}, "auth"),
        ({"type": "timeout_error", "message": "slow"}, "timeout"),
        ({"type": "api_error", "message": "Internal server error"}, "server"),
        ({"type": "invalid_request_error", "message": "prompt is too long: 9 > 8"}, "context_too_long"),
        ({"type": "invalid_request_error", "message": "x"}, "invalid_request"),
    ],
)
def test_an_error_event_is_told_by_its_type_and_words(error: Any, kind: ErrorKind) -> None:
    """Anthropic, errors: the status was 200 already."""
    with pytest.raises(ProviderError) as caught:
        AnthropicAnswer(ENDPOINT).feed(json.dumps({"type": "error", "error": error}).encode())

    assert caught.value.kind == kind


def test_nothing_is_heard_after_message_stop() -> None:
    """Anthropic, streaming: `message_stop` ends the answer."""
    answer = AnthropicAnswer(ENDPOINT)
    answer.feed(end_of("end_turn", Usage()).partition(b"data: ")[2])
    assert not answer.finished

    answer.feed(json.dumps(STOP).encode())

    assert (answer.done, answer.finished) == (True, True)
    assert answer.feed(json.dumps(text(0, "late")).encode()) == ()
    assert answer.ending()[-1] == Finish("stop")
