"""The header row and back."""

from typing import Any

import pytest

from agent_loop.session.header import SessionHeader, header_from_json, header_to_json

BARE_ROW = {"type": "session", "version": 1, "id": "s", "createdAt": 5}


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (SessionHeader("s", 5), BARE_ROW),
        (SessionHeader("s", 5, "/w", "p"), {**BARE_ROW, "cwd": "/w", "parent": "p"}),
    ],
)
def test_a_header_has_one_spelling(header: SessionHeader, row: dict[str, Any]) -> None:
    """Spec loop 1.10: `{type, version, id, createdAt, cwd?, parent?}`."""
    assert header_to_json(header) == row
    assert header_from_json(row) == header


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (None, "its first row is no header"),
        ({**BARE_ROW, "type": "turn/start"}, "its first row is no header"),
        ({**BARE_ROW, "version": 2}, "of version 2; this server reads 1"),
        ({**BARE_ROW, "id": 7}, "lacks an id or a time"),
        ({**BARE_ROW, "createdAt": "now"}, "lacks an id or a time"),
        ({"type": "session", "version": 1}, "lacks an id or a time"),
        ({**BARE_ROW, "cwd": 7}, "cwd and parent must be text"),
        ({**BARE_ROW, "parent": []}, "cwd and parent must be text"),
    ],
)
def test_a_foreign_header_is_refused(row: Any, words: str) -> None:
    """Our promise: what is read from disk becomes a type once, at the edge."""
    with pytest.raises(ValueError, match=words):
        header_from_json(row)
