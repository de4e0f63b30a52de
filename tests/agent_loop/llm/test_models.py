"""What a call makes of a model's bill and of its window."""

from agent_loop.chunks import Usage
from agent_loop.events.facts import Cost
from agent_loop.llm.models import Price, charged, context_of

EURO = Price(input=2.0, output=10.0, cache_read=0.5, cache_write=3.0, currency="EUR")


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
