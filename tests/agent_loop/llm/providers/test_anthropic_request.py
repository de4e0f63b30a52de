"""Requests in Anthropic's words, as golden values."""

import json
from types import MappingProxyType
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.llm.provider import ModelRequest, ToolSchema
from agent_loop.llm.providers.anthropic_request import GO_ON, Thinking, messages_out, request_body
from agent_loop.llm.providers.bodies import NO_OUTPUT
from agent_loop.messages import Content, Image, Message, Reasoning, Text, ToolCallBlock, ToolResultBlock
from tests.doubles import anthropic_wire

PNG = Image("iVBO", "image/png")
PNG_OUT: dict[str, Any] = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"},
}
CALL = ToolCallBlock("c1", "read", '{"path": "a"}')
CALL_OUT = {"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}
SIGNED = Reasoning("hm", MappingProxyType({"signature": "c2ln"}))
SIGNED_OUT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
REDACTED = Reasoning("", {"redacted_thinking": "x"})
REDACTED_OUT = {"type": "redacted_thinking", "data": "x"}
MARK = {"cache_control": {"type": "ephemeral"}}


def user(*content: Content) -> Message:
    return Message("user", content)


def assistant(*content: Content) -> Message:
    return Message("assistant", content)


def result(*content: Content, id: str = "c1", is_error: bool = False) -> ToolResultBlock:
    return ToolResultBlock(id, content, is_error)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def tool(*content: Any, id: str = "c1") -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": list(content)}


def said(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(content)}


def answered(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def plain(messages: list[Message]) -> Any:
    """The messages as the endpoint reads them."""
    return orjson.loads(orjson.dumps(messages_out(messages)))


HI, HI_OUT = user(Text("hi")), said(text("hi"))

GOLDEN: list[tuple[str, list[Message], list[dict[str, Any]]]] = [
    ("one text", [HI], [HI_OUT]),
    ("texts stay apart", [user(Text("a"), Text("b"))], [said(text("a"), text("b"))]),
    ("a picture", [user(Text("see"), PNG)], [said(text("see"), PNG_OUT)]),
    (
        "a picture the API cannot read is named",
        [user(Image("Qk0=", "image/bmp"))],
        [said(text("(a picture of type image/bmp, which you cannot be shown)"))],
    ),
    ("blank text goes", [user(Text(" \n"), Text("x")), user(), user(Text(""))], [said(text("x"))]),
    ("nothing at all is something", [], [said(text(GO_ON))]),
    ("neighbours become one", [HI, user(Text("there"))], [said(text("hi"), text("there"))]),
    (
        "a blank answer holds nobody apart",
        [HI, assistant(Text("")), user(Text("there"))],
        [said(text("hi"), text("there"))],
    ),
    (
        "an answer that stands last is gone on from by the person",
        [HI, assistant(Text("yes"))],
        [HI_OUT, answered(text("yes")), said(text(GO_ON))],
    ),
    (
        "an answer after an answer was asked for in the same words",
        [HI, assistant(Text("yes")), assistant(SIGNED, Text("and")), HI],
        [HI_OUT, answered(text("yes")), said(text(GO_ON)), answered(SIGNED_OUT, text("and")), HI_OUT],
    ),
    (
        "an answer that stands first was asked for",
        [assistant(Text("yes")), HI],
        [said(text(GO_ON)), answered(text("yes")), HI_OUT],
    ),
    (
        "signed thoughts go back, wherever they stand",
        [HI, assistant(SIGNED, REDACTED, Text("I read"), SIGNED, CALL), user(result(Text("A")))],
        [
            HI_OUT,
            answered(SIGNED_OUT, REDACTED_OUT, text("I read"), SIGNED_OUT, CALL_OUT),
            said(tool(text("A"))),
        ],
    ),
    (
        "unsigned thoughts do not, nor those of others",
        [HI, assistant(Reasoning("hm"), Reasoning("hm", {"reasoning_details": []}), Text("yes")), HI],
        [HI_OUT, answered(text("yes")), HI_OUT],
    ),
    (
        "a thought that was stopped before it led anywhere goes",
        [HI, assistant(Text("So"), SIGNED, REDACTED), user(Text("a")), assistant(SIGNED), user(Text("b"))],
        [HI_OUT, answered(text("So")), said(text("a"), text("b"))],
    ),
    (
        "an empty result",
        [HI, assistant(CALL), user(result(Text(" \n")))],
        [HI_OUT, answered(CALL_OUT), said(tool(text(NO_OUTPUT)))],
    ),
    (
        "a failed call",
        [HI, assistant(CALL), user(result(Text("no"), is_error=True))],
        [HI_OUT, answered(CALL_OUT), said({**tool(text("no")), "is_error": True})],
    ),
    (
        "a failed call with a picture is no error to the API",
        [HI, assistant(CALL), user(result(Text("no"), PNG, is_error=True))],
        [HI_OUT, answered(CALL_OUT), said(tool(text("no"), PNG_OUT))],
    ),
    (
        "results stand first, in their order, and what came between follows",
        [
            HI,
            assistant(CALL, ToolCallBlock("c2", "read", "")),
            user(Text("hurry"), result(Text("A"))),
            user(Text("up")),
            user(result(Text("B"), id="c2")),
        ],
        [
            HI_OUT,
            answered(CALL_OUT, {**CALL_OUT, "id": "c2", "input": {}}),
            said(tool(text("A")), tool(text("B"), id="c2"), text("hurry"), text("up")),
        ],
    ),
    (
        "ids and names of other providers fit, and stay apart",
        [
            HI,
            assistant(ToolCallBlock("fs.read:0", "fs.read", ""), ToolCallBlock("fs_read_0", "", "")),
            user(result(Text("A"), id="fs.read:0"), result(Text("B"), id="fs_read_0")),
        ],
        [
            HI_OUT,
            answered(
                {"type": "tool_use", "id": "fs_read_0", "name": "fs_read", "input": {}},
                {"type": "tool_use", "id": "fs_read_0_", "name": "unnamed", "input": {}},
            ),
            said(tool(text("A"), id="fs_read_0"), tool(text("B"), id="fs_read_0_")),
        ],
    ),
]


@pytest.mark.parametrize(("messages", "out"), [case[1:] for case in GOLDEN], ids=[case[0] for case in GOLDEN])
def test_a_conversation_in_anthropics_words(messages: list[Message], out: list[dict[str, Any]]) -> None:
    """Anthropic, Messages, tool use and extended thinking."""
    assert plain(messages) == out
    assert anthropic_wire.problem({"max_tokens": 1, "messages": out}) is None


def test_thoughts_before_a_place_are_left_out() -> None:
    """Anthropic, preserved thinking: thoughts that are refused must go, all before them too."""
    history = [HI, assistant(SIGNED, CALL), user(result(Text("A"))), assistant(SIGNED, Text("a")), HI]

    out = orjson.loads(orjson.dumps(messages_out(history, thoughts_from=3)))

    assert [message["content"][0]["type"] for message in out] == [
        "text",
        "tool_use",
        "tool_result",
        "thinking",
        "text",
    ]


@given(
    st.lists(st.sampled_from([HI, assistant(Text("yes")), assistant(SIGNED, Text("so")), user()]), max_size=6)
)
def test_what_was_once_sent_stays_as_it_was(messages: list[Message]) -> None:
    """Anthropic, preserved thinking: a thought is refused when anything before it has changed since."""
    asked = plain(messages)

    later = plain([*messages, assistant(SIGNED, Text("so")), HI])

    assert later == [*asked, answered(SIGNED_OUT, text("so")), HI_OUT]


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        (" ", {}),
        ('{"a": 1}', {"a": 1}),
        ('{"a": ', {"unreadable": '{"a": '}),
        ("[1]", {"unreadable": "[1]"}),
        ('{"a": "\\ud83d"}', {"unreadable": '{"a": "\\ud83d"}'}),
    ],
)
def test_arguments_are_always_an_object(raw: str, sent: Any) -> None:
    """Anthropic, tool use: `input` is an object, whatever the model wrote."""
    assert plain([HI, assistant(ToolCallBlock("c1", "t", raw))])[1]["content"][0]["input"] == sent


def test_arguments_of_any_depth_are_sent_as_they_were_written() -> None:
    """Our promise: the encoder's own limit on depth must not end a session."""
    raw = '{"a": ' * 400 + "1" + "}" * 400

    body = request_body(
        ModelRequest("p", "m", [assistant(ToolCallBlock("c1", "t", raw))]), max_tokens=1, thinking=None
    )

    assert raw.encode() in body


def test_a_whole_request_is_these_bytes() -> None:
    """Our promise: the same request is the same bytes, marked in three places, with what grows at the end."""
    schema = MappingProxyType({"type": "object"})
    tools = [ToolSchema("t", "Does it.", schema), ToolSchema("u", "Too.", schema)]
    request = ModelRequest("p", "m-1", [HI], "Be brief.", tools)

    assert request_body(request, max_tokens=10, thinking=None) == (
        b'{"model":"m-1","max_tokens":10,"stream":true,'
        b'"tools":[{"name":"t","description":"Does it.","input_schema":{"type":"object"}},'
        b'{"name":"u","description":"Too.","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],'
        b'"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],'
        b'"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}]}'
    )


@pytest.mark.parametrize("system", ["", " \n"])
def test_without_tools_or_system_prompt_neither_is_mentioned(system: str) -> None:
    """Anthropic refuses an empty list of tools, and blank text."""
    body = json.loads(request_body(ModelRequest("p", "m", [HI], system), max_tokens=1, thinking=None))

    assert sorted(body) == ["max_tokens", "messages", "model", "stream"]


BUDGET = {"type": "enabled", "budget_tokens": 2048}


@pytest.mark.parametrize(
    ("thinking", "messages", "asked"),
    [
        (None, [HI], None),
        ("adaptive", [HI], {"type": "adaptive", "display": "summarized"}),
        (2048, [HI], BUDGET),
        (2048, [HI, assistant(Text("yes")), user(Text("and?"))], BUDGET),
        (2048, [HI, assistant(SIGNED, CALL), user(result(Text("A")))], BUDGET),
        (
            2048,
            [HI, assistant(REDACTED, CALL), user(result(Text("A"))), assistant(CALL), user(result())],
            BUDGET,
        ),
        (2048, [HI, assistant(CALL), user(result(Text("A")))], None),
        (2048, [HI, assistant(CALL), user(result(Text("A"))), user(Text("stop that"))], None),
        (2048, [HI, assistant(SIGNED, CALL), user(result()), HI, assistant(Text("a")), HI], BUDGET),
        ("adaptive", [HI, assistant(CALL), user(result())], {"type": "adaptive", "display": "summarized"}),
    ],
)
def test_thinking_is_asked_for_where_the_api_takes_it(
    thinking: Thinking | None, messages: list[Message], asked: Any
) -> None:
    """Anthropic, extended thinking with tools: a turn that called tools without a thought goes on without."""
    body = json.loads(request_body(ModelRequest("p", "m", messages), max_tokens=4096, thinking=thinking))

    assert body.get("thinking") == asked


TEXTS = st.text(st.characters(codec="utf-8"), max_size=4).map(Text)
THOUGHTS = st.sampled_from([Reasoning("hm"), SIGNED, REDACTED])
CALLS = st.lists(st.text(max_size=3), max_size=3)
IDS = st.sampled_from(["c", "c.", "c:"])


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Whatever a log can hold: thoughts, calls with their results, and people talking in between."""
    messages: list[Message] = []
    number = 0

    for arguments in draw(st.lists(CALLS, max_size=4)):
        calls = []
        for raw in arguments:
            number += 1
            calls.append(ToolCallBlock(f"{draw(IDS)}{number}", "t", raw))

        messages.append(assistant(*draw(st.lists(TEXTS | THOUGHTS, max_size=3)), *calls))
        for call in calls:
            messages += [user(said) for said in draw(st.lists(TEXTS, max_size=1))]
            shown = draw(st.lists(TEXTS | st.just(PNG), max_size=2))
            messages.append(user(result(*shown, id=call.id, is_error=draw(st.booleans()))))
        messages += [user(said) for said in draw(st.lists(TEXTS, max_size=2))]

    return messages


@given(conversations(), st.sampled_from([None, "adaptive", 1024]))
def test_any_conversation_is_one_the_endpoint_takes(
    messages: list[Message], thinking: Thinking | None
) -> None:
    """Scenarios, standing check: no history makes the next request fail."""
    request = ModelRequest("p", "m", messages)

    body = request_body(request, max_tokens=4096, thinking=thinking)

    assert anthropic_wire.problem(json.loads(body)) is None


@given(conversations())
def test_a_longer_conversation_begins_with_the_bytes_of_the_shorter(messages: list[Message]) -> None:
    """Our promise: the provider's cache, which the mark is no part of, holds from step to step."""
    asked = [*messages, user(Text("now"))]
    longer = [*asked, assistant(SIGNED, Text("so")), user(Text("and then?"))]

    shorter_bytes, longer_bytes = (
        request_body(ModelRequest("p", "m", part, "s"), max_tokens=1, thinking=None).replace(
            b',"cache_control":{"type":"ephemeral"}', b""
        )
        for part in (asked, longer)
    )

    assert longer_bytes.startswith(shorter_bytes.removesuffix(b"]}"))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": [HI_OUT]}, "max_tokens"),
        ({"messages": []}, "first message"),
        ({"messages": [answered(text("a")), HI_OUT]}, "first message"),
        ({"messages": [HI_OUT, answered(text("a"))]}, "prefill"),
        ({"messages": [HI_OUT, HI_OUT]}, "alternate"),
        ({"messages": [said()]}, "must not be empty"),
        ({"messages": [said(text(" "))]}, "non-whitespace"),
        ({"messages": [HI_OUT], "system": [text("")]}, "non-whitespace"),
        (
            {"messages": [said({**PNG_OUT, "source": {**PNG_OUT["source"], "media_type": "image/bmp"}})]},
            "media_type",
        ),
        ({"messages": [said(CALL_OUT)]}, "only the assistant"),
        ({"messages": [HI_OUT, answered(CALL_OUT), HI_OUT]}, "must pair"),
        ({"messages": [said(tool(text("A")))]}, "must pair"),
        ({"messages": [HI_OUT, answered(CALL_OUT), said(text("a"), tool(text("A")))]}, "must come first"),
        (
            {"messages": [HI_OUT, answered(CALL_OUT, CALL_OUT), said(tool(text("A")), tool(text("A")))]},
            "unique",
        ),
        (
            {"messages": [HI_OUT, answered({**CALL_OUT, "id": "a.b"}), said(tool(text("A"), id="a.b"))]},
            "pattern",
        ),
        ({"messages": [HI_OUT, answered(CALL_OUT), said(tool())]}, "should be a block"),
        ({"messages": [HI_OUT, answered(CALL_OUT), said({**tool(PNG_OUT), "is_error": True})]}, "is_error"),
        ({"messages": [HI_OUT, answered(text("a"), SIGNED_OUT), HI_OUT]}, "final block"),
        (
            {"messages": [HI_OUT, answered({**SIGNED_OUT, "signature": ""}, text("a")), HI_OUT]},
            "Invalid `signature`",
        ),
        ({"messages": [HI_OUT, answered({**REDACTED_OUT, **MARK}, text("a")), HI_OUT]}, "Invalid `data`"),
        ({"messages": [said(*[{**text("a"), **MARK}] * 5)]}, "maximum of 4"),
        ({"messages": [HI_OUT], "tools": []}, "must not be empty"),
        (
            {"messages": [HI_OUT], "tools": [{"name": "a b", "input_schema": {"type": "object"}}]},
            "a name or a schema",
        ),
        ({"messages": [HI_OUT], "thinking": {**BUDGET, "budget_tokens": 5000}}, "less than max_tokens"),
        (
            {"messages": [HI_OUT, answered(CALL_OUT), said(tool(text("A")))], "thinking": BUDGET},
            "Expected `thinking`",
        ),
    ],
)
def test_the_double_refuses_what_the_real_endpoint_refuses(body: dict[str, Any], words: str) -> None:
    """Doubles: a check that never fails proves nothing."""
    limit = {} if words == "max_tokens" else {"max_tokens": 4096}

    assert words.lower() in (anthropic_wire.problem({**limit, **body}) or "").lower()
