"""Requests in OpenAI's words, as golden values."""

import json
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.llm.provider import ModelRequest, ToolSchema
from agent_loop.llm.providers.bodies import NO_OUTPUT
from agent_loop.llm.providers.openai_request import messages_out, request_body
from agent_loop.messages import (
    Content,
    Image,
    Message,
    Reasoning,
    Text,
    ToolCallBlock,
    ToolResultBlock,
)
from tests.doubles import openai_wire

PNG = Image("iVBO", "image/png")
PNG_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}}
CALL = ToolCallBlock("c1", "read", '{"path": "a"}')
CALL_OUT = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL_OUT]}


def user(*content: Content) -> Message:
    return Message("user", content)


def assistant(*content: Content) -> Message:
    return Message("assistant", content)


def result(*content: Content, id: str = "c1") -> ToolResultBlock:
    return ToolResultBlock(id, content)


def tool(content: str, id: str = "c1") -> dict[str, str]:
    return {"role": "tool", "tool_call_id": id, "content": content}


def said(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


GOLDEN: list[tuple[str, list[Message], list[dict[str, Any]]]] = [
    ("one text is a plain string", [user(Text("hi"))], [said("hi")]),
    ("texts are joined", [user(Text("a"), Text("b"))], [said("ab")]),
    ("a picture makes parts", [user(Text("see"), PNG)], [said([{"type": "text", "text": "see"}, PNG_PART])]),
    ("an empty text beside a picture goes", [user(Text(""), PNG)], [said([PNG_PART])]),
    ("nothing said is no message", [user(), user(Text("")), user(Text("x"))], [said("x")]),
    ("an answer", [assistant(Text("yes"))], [{"role": "assistant", "content": "yes"}]),
    ("an empty answer stays a turn", [assistant(Text(""))], [{"role": "assistant", "content": ""}]),
    (
        "thoughts alone are not sent",
        [assistant(Reasoning("hm"), Text("yes"))],
        [{"role": "assistant", "content": "yes"}],
    ),
    (
        "thoughts before a call are",
        [assistant(Reasoning("hm"), Text("I read"), CALL), user(result(Text("A")))],
        [{**CALLED, "content": "I read", "reasoning_content": "hm"}, tool("A")],
    ),
    (
        "what a gateway signed goes back with them",
        [assistant(Reasoning("hm", {"reasoning_details": ({"type": "x", "data": "y"},)}), CALL)],
        [{**CALLED, "reasoning_content": "hm", "reasoning_details": [{"type": "x", "data": "y"}]}],
    ),
    (
        "what another format signed does not",
        [assistant(Reasoning("", {"signature": "c2ln"}), CALL)],
        [CALLED],
    ),
    ("a call without words", [assistant(CALL), user(result(Text("A")))], [CALLED, tool("A")]),
    ("an empty result", [assistant(CALL), user(result(Text(" \n")))], [CALLED, tool(NO_OUTPUT)]),
    (
        "a message of results and text is split",
        [assistant(CALL), user(Text("go on"), result(Text("A")))],
        [CALLED, tool("A"), said("go on")],
    ),
    (
        "what comes between a call and its result waits",
        [assistant(CALL), user(Text("hurry")), user(result(Text("A"))), user(Text("more"))],
        [CALLED, tool("A"), said("hurry"), said("more")],
    ),
    (
        "pictures in results follow as the person's, after the last result",
        [
            assistant(CALL, ToolCallBlock("c2", "read", "{}")),
            user(result(PNG)),
            user(result(Text("B"), id="c2")),
        ],
        [
            {
                **CALLED,
                "tool_calls": [
                    CALL_OUT,
                    {**CALL_OUT, "id": "c2", "function": {"name": "read", "arguments": "{}"}},
                ],
            },
            tool(NO_OUTPUT),
            tool("B", "c2"),
            said([PNG_PART]),
        ],
    ),
    (
        "a call that was never answered holds up nothing",
        [assistant(CALL), user(Text("hello?")), assistant(Text("yes"))],
        [CALLED, said("hello?"), {"role": "assistant", "content": "yes"}],
    ),
]


@pytest.mark.parametrize(("messages", "out"), [case[1:] for case in GOLDEN], ids=[case[0] for case in GOLDEN])
def test_a_conversation_in_openais_words(messages: list[Message], out: list[dict[str, Any]]) -> None:
    """OpenAI, chat completions, messages; DeepSeek, thinking with tools."""
    assert messages_out("", messages, returns_reasoning=True) == out


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        ("", "{}"),
        (" ", "{}"),
        ('{"a": 1}', '{"a": 1}'),
        ('{"a": ', '{"unreadable":"{\\"a\\": "}'),
    ],
)
def test_arguments_are_always_json(raw: str, sent: str) -> None:
    """Public bug reports: servers whose template parses arguments refuse a session for one bad call."""
    out = messages_out("", [assistant(ToolCallBlock("c1", "t", raw))], returns_reasoning=True)

    assert out[0]["tool_calls"][0]["function"]["arguments"] == sent


def test_openai_itself_gets_no_thoughts_back() -> None:
    """OpenAI, chat completions: an unknown field of a message is refused."""
    out = messages_out("", [assistant(Reasoning("hm"), CALL)], returns_reasoning=False)

    assert out == [CALLED]


def test_a_whole_request_is_these_bytes() -> None:
    """Our promise: the same request is the same bytes, with what grows at the end."""
    schema = MappingProxyType({"type": "object", "properties": MappingProxyType({})})
    request = ModelRequest("p", "m-1", [user(Text("hi"))], "Be brief.", [ToolSchema("t", "Does it.", schema)])

    body = request_body(request, returns_reasoning=False)

    assert body == (
        b'{"model":"m-1","stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function",'
        b'"function":{"name":"t","description":"Does it.","parameters":{"type":"object","properties":{}}}}],'
        b'"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}]}'
    )


def test_without_tools_or_system_prompt_neither_is_mentioned() -> None:
    """OpenAI refuses an empty list of tools."""
    body = json.loads(request_body(ModelRequest("p", "m", [user(Text("hi"))]), returns_reasoning=False))

    assert ("tools" in body, body["messages"]) == (False, [said("hi")])


def test_a_schema_that_is_no_json_is_our_bug_and_rises() -> None:
    """Style, errors: ours are loud."""
    request = ModelRequest("p", "m", [], tools=[ToolSchema("t", "", {"default": object()})])

    with pytest.raises(TypeError, match="not JSON"):
        request_body(request, returns_reasoning=False)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=4).map(Text)
CALLS = st.lists(st.text(max_size=3), max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Whatever a log can hold: calls with their results, and people talking in between."""
    messages: list[Message] = []
    number = 0

    for arguments in draw(st.lists(CALLS, max_size=4)):
        calls = []
        for raw in arguments:
            number += 1
            calls.append(ToolCallBlock(f"c{number}", "t", raw))

        messages.append(assistant(*draw(st.lists(TEXTS, max_size=2)), *calls))
        for call in calls:
            messages += [user(text) for text in draw(st.lists(TEXTS, max_size=1))]
            messages.append(user(result(*draw(st.lists(TEXTS | st.just(PNG), max_size=2)), id=call.id)))
        messages += [user(text) for text in draw(st.lists(TEXTS, max_size=2))]

    return messages


@given(conversations())
def test_any_conversation_is_one_the_endpoint_takes(messages: list[Message]) -> None:
    """Scenarios, standing check: no history makes the next request fail."""
    request = ModelRequest("p", "m", messages)

    assert openai_wire.problem(json.loads(request_body(request, returns_reasoning=True))) is None


@given(conversations())
def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter(messages: list[Message]) -> None:
    """Our promise: the provider's prompt cache holds from step to step."""
    longer = [*messages, user(Text("and then?"))]

    shorter_bytes, longer_bytes = (
        request_body(ModelRequest("p", "m", part, "s"), returns_reasoning=True) for part in (messages, longer)
    )

    assert longer_bytes.startswith(shorter_bytes.removesuffix(b"]}"))


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"role": "user", "content": "x"}, tool("A")], "must follow"),
        ([CALLED], "must be followed"),
        ([CALLED, said("x"), tool("A")], "must be followed"),
        ([CALLED, tool("")], "content is empty"),
        ([{**CALLED, "tool_calls": []}], "must not be empty"),
        ([{**CALLED, "tool_calls": [CALL_OUT, CALL_OUT]}], "nor use an id twice"),
        ([{"role": "assistant", "content": None}], "expected a string"),
    ],
)
def test_the_double_refuses_what_the_real_endpoint_refuses(messages: list[Any], words: str) -> None:
    """Doubles: a check that never fails proves nothing."""
    assert words in (openai_wire.problem({"messages": messages}) or "")


def test_the_double_refuses_arguments_that_are_no_json_and_empty_tools() -> None:
    """Doubles: the same."""
    bad = {**CALL_OUT, "function": {"name": "t", "arguments": "{"}}

    assert "not JSON" in (openai_wire.problem({"messages": [{**CALLED, "tool_calls": [bad]}]}) or "")
    assert openai_wire.problem({"messages": [], "tools": []}) == "tools must not be empty"
