"""Bounds: what reaches the model, the card and the log."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.cards import Card
from agent_loop.messages import Image, Text, text_of
from agent_loop.tools.bounds import (
    CONTENT_LIMIT_BYTES,
    INPUT_LIMIT_BYTES,
    bounded_content,
    bounded_input,
    check_card,
)

PICTURE = Image("aGk=", "image/png")

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text().map(lambda text: text * 3000),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


def test_content_within_the_bound_is_left_as_it_is() -> None:
    """Contracts 2: the log holds what the model got, at most 64,000 bytes."""
    content = (Text("é" * (CONTENT_LIMIT_BYTES // 2)), PICTURE)

    assert bounded_content(content) == content


def test_too_much_content_keeps_its_ends_and_its_pictures() -> None:
    """Contracts 2."""
    cut = bounded_content((Text("a" * 40_000), PICTURE, Text("b" * 40_000)))

    text = text_of(cut)
    assert cut[1:] == (PICTURE,)
    assert len(text.encode()) <= CONTENT_LIMIT_BYTES
    assert text.startswith("a" * 30_000)
    assert text.endswith("b" * 30_000)
    assert "bytes left out" in text


def test_lone_surrogates_never_reach_the_log() -> None:
    """Contracts 8."""
    assert bounded_content((Text("a\ud800"), PICTURE)) == (Text("a\ufffd"), PICTURE)


@given(values)
def test_a_cards_input_is_small_json_whatever_the_arguments(value: Any) -> None:
    """Contracts 2: cards are stored; ours carry at most 8 KiB of input."""
    assert len(orjson.dumps(bounded_input(value))) <= INPUT_LIMIT_BYTES


def test_long_texts_are_shortened_before_anything_else() -> None:
    """Our promise: the person still sees every argument."""
    assert bounded_input({"path": "a", "n": [1, 2]}) == {"path": "a", "n": [1, 2]}

    shown = bounded_input({"path": "a", "content": "x" * 100_000, "more": ["y" * 100_000]})

    assert shown["path"] == "a"
    assert "bytes left out" in shown["content"]
    assert "bytes left out" in shown["more"][0]
    assert bounded_input(list(range(10_000))).startswith("[0, 1, 2, ")
    assert bounded_input([2**64]) == "[18446744073709551616]"  # no JSON of ours has such numbers


def test_a_card_the_log_cannot_carry_is_found_out() -> None:
    """Contracts 8: orjson writes NaN as null without a word."""
    card = Card(kind="other", title="t", input={"a": [1]})

    assert check_card(card) is card

    with pytest.raises(ValueError, match=r"\$\.input\.a is nan"):
        check_card(Card(kind="other", title="t", input={"a": float("nan")}))
