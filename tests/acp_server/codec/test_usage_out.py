"""What a turn used, as its prompt's answer tells it."""

from acp_server.codec.usage_out import added, usage_out
from agent_loop import Usage


def test_what_was_not_counted_is_left_out() -> None:
    """ACP draft, Usage: optional counts are absent, not zero; the total is of all kinds."""
    assert usage_out(Usage(10, 3)) == {"inputTokens": 10, "outputTokens": 3, "totalTokens": 13}
    assert usage_out(Usage(1, 2, 3, 4, 5)) == {
        "inputTokens": 1,
        "outputTokens": 2,
        "cachedReadTokens": 3,
        "cachedWriteTokens": 4,
        "thoughtTokens": 5,
        "totalTokens": 15,
    }


def test_the_calls_of_a_turn_are_added_up() -> None:
    """Issue, usage: per turn, whatever the number of calls."""
    assert added(Usage(1, 2, 3, 4, 5), Usage(10, 20, 30, 40, 50)) == Usage(11, 22, 33, 44, 55)
