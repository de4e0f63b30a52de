"""What may enter the log as plain JSON, and what would not survive it."""

import enum
import math
from types import MappingProxyType
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.jsonvalue import clean_text, freeze_json, thaw_json
from tests.doubles.facts import json_values, unhurried

any_text = st.text(st.characters())


class Words(str):
    """Text that brings its own class along."""


class Colour(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class Share(float):
    """A number that brings its own class along."""


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def cycle() -> Any:
    value: dict[str, Any] = {}
    value["again"] = [value]
    return value


@given(json_values)
@unhurried
def test_json_comes_back_as_it_was(value: Any) -> None:
    """Contract 1: open payloads are checked for lossless JSON and frozen once."""
    frozen = freeze_json(value)

    assert thaw_json(frozen) == value
    assert orjson.loads(orjson.dumps(thaw_json(frozen))) == value


@given(json_values)
@unhurried
def test_what_is_frozen_may_be_frozen_again(value: Any) -> None:
    """Our promise: handing a logged payload on is no special case."""
    frozen = freeze_json(value)

    assert freeze_json(frozen) == frozen


def test_what_is_frozen_is_a_copy_nobody_can_change() -> None:
    """Spec loop 8.13: derived mutation cannot reach the log."""
    source = {"a": [1, {"b": 2}]}

    frozen = freeze_json(source)
    source["a"].append(3)

    assert frozen == MappingProxyType({"a": (1, MappingProxyType({"b": 2}))})
    with pytest.raises(TypeError):
        frozen["a"] = 1
    with pytest.raises(TypeError):
        frozen["a"][1]["b"] = 1


def test_what_is_thawed_is_a_copy_too() -> None:
    """Our promise: whoever serialises a fact cannot change it."""
    frozen = freeze_json({"a": [1]})

    thaw_json(frozen)["a"].append(2)

    assert thaw_json(frozen) == {"a": [1]}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.nan, r"^\$ is nan, which is not JSON$"),
        ({"a": [0, math.inf]}, r"^\$\.a\[1\] is inf, which is not JSON$"),
        ([-math.inf], r"^\$\[0\] is -inf, which is not JSON$"),
        ({"a": "x\ud800"}, r"^\$\.a holds a lone surrogate, which is not JSON text$"),
        ({"\udc00": 1}, r"^a key of \$ holds a lone surrogate, which is not JSON text$"),
        ([{"a": {"\ud83d\ude00": 1}}], r"^a key of \$\[0\]\.a holds a lone surrogate"),
        (2**63, r"^\$ is an integer of more than 64 bits$"),
        (-(2**63) - 1, r"^\$ is an integer of more than 64 bits$"),
        ({1: "a"}, r"^\$ has the key 1, which is not text$"),
        ([{None: "a"}], r"^\$\[0\] has the key None, which is not text$"),
        (b"bytes", r"^\$ is a bytes, which is not JSON$"),
        ({"a": {1, 2}}, r"^\$\.a is a set, which is not JSON$"),
        (Ellipsis, r"^\$ is a ellipsis, which is not JSON$"),
        (nested(201), r"is nested deeper than 200 levels$"),
        (cycle(), r"is nested deeper than 200 levels$"),
    ],
    ids=lambda it: ascii(it)[:24],
)
def test_what_json_would_lose_is_refused_with_its_place(value: Any, words: str) -> None:
    """Contract 8: NaN, infinities and lone surrogates are refused; orjson writes NaN as null silently."""
    with pytest.raises(ValueError, match=words):
        freeze_json(value)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 0.1, -0.0, 5e-324, "", "\0", [], {}, nested(200)])
def test_the_edges_of_json_are_kept(value: Any) -> None:
    """Our promise: the check refuses nothing that would survive."""
    assert orjson.loads(orjson.dumps(thaw_json(freeze_json(value)))) == value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (Words("a"), "a"),
        (Colour.RED, "red"),
        (Number.ONE, 1),
        (Share(0.5), 0.5),
        (True, True),
        ({Words("k"): Colour.RED}, {"k": "red"}),
        ((1, 2), [1, 2]),
    ],
)
def test_dressed_up_values_become_plain_ones(value: Any, plain: Any) -> None:
    """Our promise: whatever passes the check can be written; orjson refuses some subclasses."""
    thawed = thaw_json(freeze_json(value))

    assert orjson.dumps(thawed) == orjson.dumps(plain)
    assert type(thawed) is type(plain)


@given(any_text)
@unhurried
def test_clean_text_is_utf8_and_keeps_all_the_rest(text: str) -> None:
    """Contract 8: text from tools and files is cleaned where it enters."""
    cleaned = clean_text(text)

    cleaned.encode()
    assert clean_text(cleaned) == cleaned
    if not any("\ud800" <= char <= "\udfff" for char in text):
        assert cleaned == text


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\ud800b", "a\ufffdb"),
        ("\udcff", "\ufffd"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ud800\ud83d\ude00\udc00!", "\ufffd\U0001f600\ufffd!"),
    ],
    ids=ascii,
)
def test_lone_surrogates_become_replacement_characters(text: str, cleaned: str) -> None:
    """Our promise: one mark for each lost half, and two halves that belong together are one letter."""
    assert clean_text(text) == cleaned
