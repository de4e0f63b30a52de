"""Bounds: what is cut says so, what is split loses nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_server.codec.bounds import FIELD_LIMIT_BYTES, bounded, pieces

NOTE_BYTES = 60
wide = st.text(alphabet="aé漢🦀\n", max_size=200)


@given(wide, st.integers(8, 64))
def test_bounded_text_is_whole_or_says_what_is_missing(text: str, limit: int) -> None:
    """Scenario B02: bound the text of each update and say that it was cut."""
    shown = bounded(text, limit)

    if len(text.encode()) <= limit:
        assert shown == text
    else:
        assert len(shown.encode()) <= limit + NOTE_BYTES
        head, note, tail = shown.rpartition("\n[…")[0], "bytes left out", shown.rpartition("…]\n")[2]
        assert text.startswith(head)
        assert text.endswith(tail)
        assert note in shown


@given(wide, st.integers(4, 64))
def test_pieces_are_all_of_the_text_and_each_within_the_limit(text: str, limit: int) -> None:
    """Contracts 3: message text is never truncated, only split, and on a character."""
    parts = list(pieces(text, limit))

    assert "".join(parts) == text
    assert all(len(part.encode()) <= limit for part in parts)
    assert all(parts) or not text


@pytest.mark.parametrize("character", ["a", "é", "漢", "🦀"])
def test_a_long_text_is_split_into_as_few_pieces_as_fit(character: str) -> None:
    """Contracts 3: joined up to 32 KiB per update."""
    text = character * (FIELD_LIMIT_BYTES * 2 // len(character.encode()))

    assert len(list(pieces(text))) <= 3
