"""The table of models: which row a name finds, and what a call makes of a bill."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.chunks import Usage
from agent_loop.events.facts import Cost
from agent_loop.llm.models import UNKNOWN, Price, charged, context_of, known_model

EURO = Price(input=2.0, output=10.0, cache_read=0.5, cache_write=3.0, currency="EUR")


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


def test_a_call_is_charged_by_kind_of_token_on_top_of_what_was_spent() -> None:
    """Issue, usage: cumulative cost; thoughts are paid like words."""
    usage = Usage(1_000_000, 100_000, 2_000_000, 1_000_000, 100_000)

    first = charged(EURO, usage, None)
    second = charged(EURO, usage, first)

    assert first == Cost(2.0 + 1.0 + 1.0 + 3.0 + 1.0, 8.0, "EUR")
    assert second == Cost(8.0, 16.0, "EUR")
    assert charged(EURO, usage, Cost(1.0, 5.0, "USD")) == first


def test_what_is_in_the_context_is_all_but_the_thoughts() -> None:
    """Issue, usage: occupancy of the last call."""
    assert context_of(Usage(1, 20, 300, 4_000, 50_000)) == 4_321
