"""Messages as JSON and back."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given

from agent_loop.jsonvalue import freeze_json
from agent_loop.messages import (
    Content,
    Image,
    Reasoning,
    Text,
    ToolCallBlock,
    ToolResultBlock,
    content_from_json,
    content_to_json,
    text_of,
)
from tests.doubles.facts import contents, unhurried

EVERY_BLOCK: tuple[Content, ...] = (
    Text("hi"),
    Reasoning("hm"),
    Reasoning("hm", {"signature": ["x"]}),
    ToolCallBlock("c1", "read", "{bad"),
    ToolResultBlock("c1", (Text("out"), Image("AA==", "image/png")), True),
    Image("AA==", "image/png"),
)
EVERY_ROW: list[dict[str, Any]] = [
    {"type": "text", "text": "hi"},
    {"type": "reasoning", "text": "hm"},
    {"type": "reasoning", "text": "hm", "opaque": {"signature": ["x"]}},
    {"type": "tool-call", "id": "c1", "name": "read", "arguments": "{bad"},
    {
        "type": "tool-result",
        "callId": "c1",
        "content": [
            {"type": "text", "text": "out"},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
        ],
        "isError": True,
    },
    {"type": "image", "data": "AA==", "mimeType": "image/png"},
]


def test_each_block_has_one_spelling() -> None:
    """Contract 1: stored sessions depend on it."""
    assert content_to_json(EVERY_BLOCK) == EVERY_ROW
    assert content_from_json(EVERY_ROW) == EVERY_BLOCK


@given(contents)
@unhurried
def test_content_survives_a_file(content: tuple[Content, ...]) -> None:
    """Our promise: losslessly there and back."""
    line = orjson.dumps(content_to_json(content))

    again = content_from_json(json.loads(line))

    assert orjson.dumps(content_to_json(again)) == line


def test_what_a_provider_wants_back_may_be_frozen() -> None:
    """Our promise: a frozen payload reaches the file like any other."""
    frozen = Reasoning("hm", freeze_json({"signature": ["x"]}))

    assert content_to_json((frozen,)) == [EVERY_ROW[2]]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ([{"type": "video"}], ValueError),
        ([{"type": "text"}], KeyError),
        ([{}], KeyError),
        (["text"], TypeError),
        (None, TypeError),
    ],
)
def test_a_foreign_block_is_refused(value: Any, error: type[Exception]) -> None:
    """Our promise: nothing unknown becomes a message."""
    with pytest.raises(error):
        content_from_json(value)


def test_only_text_blocks_have_text() -> None:
    """Our promise: reasoning, calls and pictures are no words to a person."""
    assert text_of((Text("a"), Reasoning("b"), Image("", ""), Text("c"))) == "ac"
