"""Cards as JSON and back, and how one goes on."""

import json
from typing import Any

import orjson
import pytest
from hypothesis import given

from agent_loop.cards import (
    Card,
    CardCode,
    CardDiff,
    CardOutput,
    CardText,
    Location,
    card_from_json,
    card_to_json,
)
from agent_loop.jsonvalue import freeze_json
from tests.doubles.facts import drawn_cards, unhurried

FULL = Card(
    kind="edit",
    title="src/a.py",
    body=(
        CardText("*why*"),
        CardCode("x = 1", "python"),
        CardDiff("/w/src/a.py", None, "x = 1\n"),
        CardOutput("done", truncated=True),
    ),
    locations=(Location("/w/src/a.py", 3), Location("/w/src")),
    input={"path": "a.py", "lines": [1, 2]},
    status="done",
    terminal="/w",
)
FULL_ROW: dict[str, Any] = {
    "kind": "edit",
    "title": "src/a.py",
    "status": "done",
    "body": [
        {"type": "text", "text": "*why*"},
        {"type": "code", "text": "x = 1", "language": "python"},
        {"type": "diff", "path": "/w/src/a.py", "old": None, "new": "x = 1\n"},
        {"type": "output", "text": "done", "truncated": True},
    ],
    "locations": [{"path": "/w/src/a.py", "line": 3}, {"path": "/w/src", "line": None}],
    "input": {"path": "a.py", "lines": [1, 2]},
    "terminal": "/w",
}


def test_a_card_has_one_spelling() -> None:
    """Contract 2: facts carry cards, so stored sessions depend on it."""
    assert card_to_json(FULL) == FULL_ROW
    assert card_from_json(FULL_ROW) == FULL


def test_a_bare_card_takes_little_room() -> None:
    """Our promise: what a card does not have is not written."""
    bare = Card("other", "wait")

    assert card_to_json(bare) == {"kind": "other", "title": "wait", "status": "pending"}
    assert card_from_json(card_to_json(bare)) == bare


@given(drawn_cards)
@unhurried
def test_a_card_survives_a_file(card: Card) -> None:
    """Our promise: losslessly there and back, frozen input included."""
    line = orjson.dumps(card_to_json(card))

    again = card_from_json(json.loads(line))

    assert orjson.dumps(card_to_json(again)) == line


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({**FULL_ROW, "body": [{"type": "video"}]}, ValueError),
        ({"kind": "edit"}, KeyError),
        ({**FULL_ROW, "locations": [{"path": "/w"}]}, KeyError),
        ({"kind": "edit", "title": "t", "status": "half-done"}, ValueError),
        ([], TypeError),
    ],
)
def test_a_foreign_card_is_refused(value: Any, error: type[Exception]) -> None:
    """Our promise: nothing unknown becomes a card."""
    with pytest.raises(error):
        card_from_json(value)


def test_a_card_goes_on_without_changing_the_one_before() -> None:
    """Contract 1: facts never change, and cards are part of them."""
    start = Card("execute", "make", (CardText("…"),), input=freeze_json({"command": "make"}))

    running = start.with_status("running")
    done = running.with_status("done", (CardOutput("ok"),))
    emptied = done.with_status("failed", ())

    assert (start.status, running.status, running.body) == ("pending", "running", start.body)
    assert done == Card("execute", "make", (CardOutput("ok"),), input=start.input, status="done")
    assert emptied.body == ()
