"""Remembered answers: what one covers, how it is offered, and that the same thing is recognised again."""

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.jsonvalue import freeze_json
from agent_loop.plugins.permission.approver import ALLOW_ONCE, REJECT_ONCE
from agent_loop.plugins.permission.grants import (
    LONGEST_CHARS,
    Covered,
    Grant,
    covered_by,
    grant_from_json,
    grant_to_json,
    options_for,
)
from agent_loop.tools.tool import EffectKind
from tests.agent_loop.plugins.permission.bench import command, fetching, touching
from tests.doubles.facts import texts, unhurried
from tests.doubles.workshop import Workshop

some = texts.filter(bool)
covereds = st.one_of(
    st.builds(Covered, st.just("other"), tool=some),
    st.builds(
        Covered,
        st.sampled_from(["write", "delete", "move"]),
        paths=st.lists(some, min_size=1, max_size=2).map(tuple),
    ),
    st.builds(Covered, st.just("execute"), shell=some, cwd=some),
    st.builds(Covered, st.just("fetch"), domain=some),
)
grants = st.builds(Grant, some, st.booleans(), covereds, st.integers(0, 2**50))


@given(grants)
@unhurried
def test_a_grant_survives_a_file_and_a_log(grant: Grant) -> None:
    """Our promise: what was allowed is what is recognised, after a restart, too."""
    assert grant_from_json(grant_to_json(grant)) == grant
    assert grant_from_json(freeze_json(grant_to_json(grant))) == grant


WHOLE = {"id": "a", "effect": "allow", "createdAt": 1, "kind": "write", "paths": ["/a"]}


@pytest.mark.parametrize(
    "change",
    [
        {"effect": "maybe"},
        {"id": 1},
        {"createdAt": "now"},
        {"kind": "nuke"},
        {"kind": ["write"]},
        {"paths": []},
        {"paths": "/a"},
        {"paths": [1]},
        {"paths": None},
        {"shell": 1},
    ],
    ids=str,
)
def test_what_is_no_grant_is_refused(change: dict[str, Any]) -> None:
    """Our promise: a damaged file allows nothing, least of all everything."""
    assert grant_from_json(WHOLE).covered.paths == ("/a",)
    with pytest.raises(ValueError, match="not a remembered answer"):
        grant_from_json({**WHOLE, **change})


def test_a_grant_covers_the_very_same_thing(shop: Workshop) -> None:
    """fountain PR999, kimi-cli#1542: "always" meant different things."""
    root = str(shop.root)
    assert covered_by(command(shop, "make  test")) == Covered("execute", shell="make  test", cwd=root)
    assert covered_by(touching(shop, "move", "a", "b")) == Covered("move", paths=(f"{root}/a", f"{root}/b"))
    assert covered_by(touching(shop, "write", "x/../a")) == Covered("write", paths=(f"{root}/a",))
    assert covered_by(fetching(shop, "x.org")) == Covered("fetch", domain="x.org")
    assert covered_by(touching(shop, "other", tool="ask_moon")) == Covered("other", tool="ask_moon")


def test_what_cannot_be_said_exactly_is_not_remembered(shop: Workshop) -> None:
    """Our promise: looking is free anyway; what is too long, or no JSON can carry, is asked each time."""
    for call in (
        touching(shop, "read", "a"),
        touching(shop, "none"),
        command(shop, "x" * (LONGEST_CHARS + 1)),
        touching(shop, "write", "a\udc80"),
    ):
        assert covered_by(call) is None
    assert options_for(None, ()) == (ALLOW_ONCE, REJECT_ONCE)


@pytest.mark.parametrize(
    ("covered", "shown", "what"),
    [
        (Covered("write", paths=("/p/a.txt",)), ("a.txt",), "writing a.txt"),
        (Covered("move", paths=("/p/a", "/p/b")), ("a", "b"), "moving a to b"),
        (Covered("delete", paths=("/p/a",)), ("a",), "deleting a"),
        (Covered("execute", shell="make", cwd="/p"), (), "this exact command"),
        (Covered("fetch", domain="x.org"), (), "fetching from x.org"),
        (Covered("other", tool="ask_moon"), (), "using the tool ask_moon"),
        (Covered("write", paths=("/p/a\nb",)), ("a\nb",), "writing exactly this"),
        (Covered("write", paths=("/p/" + "a" * 90,)), ("a" * 90,), "writing exactly this"),
    ],
)
def test_an_option_says_what_it_covers(covered: Covered, shown: tuple[str, ...], what: str) -> None:
    """fountain PR999: option text states scope. ACP: the kinds are hints, the ids are ours."""
    assert [(option.id, option.kind, option.name) for option in options_for(covered, shown)] == [
        ("allow_once", "allow_once", "Allow once"),
        ("allow_session", "allow_always", f"Allow {what} for this session"),
        ("allow_project", "allow_always", f"Always allow {what} in this project"),
        ("reject_once", "reject_once", "Reject"),
        ("reject_project", "reject_always", f"Always reject {what} in this project"),
    ]


@pytest.mark.parametrize("kind", get_args(EffectKind))
def test_every_kind_of_effect_has_words(kind: EffectKind) -> None:
    """Our promise: a list of remembered answers can be read."""
    assert Grant("a", False, Covered(kind, paths=("/a\tb",)), 1).text.endswith("/a b")
