"""The table of models: which row a name finds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.llm.catalogue import UNKNOWN, known_model


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("gpt-5-2025-08-07", "gpt-5"),
        ("openai/gpt-4.1", "gpt-4-1"),
        ("gpt-4.1-mini-2025-04-14", "gpt-4-1-mini"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("anthropic/Claude-Opus-5.5", "claude-opus-5-5"),
        ("claude-sonnet-5-latest", "claude-sonnet-5"),
        ("gpt-5-turbo", ""),
        ("gpt-50", ""),
        ("my-gpt-5", ""),
        ("qwen3:8b", ""),
        ("", ""),
    ],
)
def test_a_name_finds_its_row_whatever_stands_around_it(name: str, same: str) -> None:
    """Our promise: makers in front and dates behind change nothing; a likeness is not enough."""
    assert known_model(name) == (known_model(same) if same else UNKNOWN)
    assert not same or known_model(same).context_window


@given(st.text(max_size=30))
def test_any_name_is_answered(name: str) -> None:
    """Our promise: unknown models work."""
    assert known_model(name) is not None
