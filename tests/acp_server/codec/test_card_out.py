"""Cards as ACP tool-call fields."""

from typing import Any, get_args

import pytest
from acp import schema
from hypothesis import given

from acp_server.codec.bounds import FIELD_LIMIT_BYTES
from acp_server.codec.card_out import STATUS, card_out, content_out
from agent_loop import Card, CardCode, CardDiff, CardOutput, CardStatus, CardText, Location
from tests.doubles.facts import drawn_cards


def shown(item: Any) -> Any:
    """One item as content; the words alone when it is text."""
    [content] = content_out((item,))
    return content["content"]["text"] if content["type"] == "content" else content


@given(drawn_cards)
def test_every_card_is_a_tool_call_of_the_protocol(card: Card) -> None:
    """ACP, schema ToolCall."""
    schema.ToolCall.model_validate({"toolCallId": "c1", **card_out(card)})


def test_every_status_is_told_and_a_cancelled_call_failed() -> None:
    """ACP, tool calls: v1 has no status for a cancelled call."""
    assert set(STATUS) == set(get_args(CardStatus))
    assert STATUS["cancelled"] == "failed"


def test_a_card_tells_only_what_it_has() -> None:
    """ACP, tool calls: everything but id and title is optional."""
    bare = card_out(Card("read", "a.txt"))
    full = card_out(
        Card("read", "a.txt", (CardText("x"),), (Location("/a.txt"), Location("/b.txt", 3)), {"path": ("a",)})
    )

    assert bare == {"title": "a.txt", "kind": "read", "status": "pending"}
    assert full["locations"] == [{"path": "/a.txt"}, {"path": "/b.txt", "line": 3}]
    assert full["rawInput"] == {"path": ["a"]}


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (CardText("*prose*"), "*prose*"),
        (CardCode("x = 1", "python"), "```python\nx = 1\n```"),
        (CardOutput("a\nb\n"), "```console\na\nb\n```"),
        (CardOutput("a", True), "```console\na\n```\n[part of the output is left out]"),
        (CardCode("```\nx\n```"), "````\n```\nx\n```\n````"),
        (CardOutput("````"), "`````console\n````\n`````"),
    ],
)
def test_text_is_shown_as_it_stands(item: Any, words: str) -> None:
    """ACP, content: clients render text as Markdown, so what is none is fenced, and safely."""
    assert shown(item) == words


@pytest.mark.parametrize("old", [None, "", "before"])
def test_a_diff_keeps_both_sides(old: str | None) -> None:
    """ACP, tool calls (diffs): oldText is null for a new file, which an empty one is not."""
    assert shown(CardDiff("/a", old, "after")) == {
        "type": "diff",
        "path": "/a",
        "oldText": old,
        "newText": "after",
    }


@pytest.mark.parametrize(
    ("old", "words"), [(None, "a new file"), ("é" * FIELD_LIMIT_BYTES, "65536 bytes now")]
)
def test_a_diff_too_large_to_send_says_so_in_words(old: str | None, words: str) -> None:
    """Scenario B02: bounded, said that it was cut, and never a diff of a file nobody wrote."""
    [content] = content_out((CardDiff("/a", old, "x" * (FIELD_LIMIT_BYTES + 1)),))

    assert content["type"] == "content"
    assert words in content["content"]["text"]
    assert len(content["content"]["text"]) < FIELD_LIMIT_BYTES + 300


@pytest.mark.parametrize("make", [CardText, CardCode, CardOutput])
def test_no_field_is_larger_than_the_bound(make: Any) -> None:
    """Contracts 2: the wire carries at most 32 KiB per field."""
    assert len(shown(make("x" * 10**6)).encode()) < FIELD_LIMIT_BYTES + 200
    assert len(card_out(Card("read", "x" * 10**6))["title"].encode()) < FIELD_LIMIT_BYTES + 200
