"""Whatever an editor does, in whatever order: the rules of the conversation hold.

Never an update before its card, one answer per prompt and nothing of a turn after it, no card left open,
cancels answered in their tick, waiting prompts in order, and a log that keeps its own rules.
"""

import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.acp_server.bridge.conversations import Move, conversations, converse
from tests.doubles.memory_model import Item

# Without shrinking: a conversation that hangs waits for seconds, and would do so hundreds of times.
QUICK = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
LONG = settings(QUICK, max_examples=2000, derandomize=False, phases=tuple(Phase))


def hold(conversation: tuple[list[list[Item]], list[Move]]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(converse, Path(folder), *conversation)


@given(conversations)
@QUICK
def test_the_rules_hold_in_any_conversation(conversation: tuple[list[list[Item]], list[Move]]) -> None:
    """Seed, properties.spec; the standing checks of the field scenarios."""
    assert hold(conversation) == []


@pytest.mark.sweep
@given(conversations)
@LONG
def test_the_rules_hold_in_many_conversations(conversation: tuple[list[list[Item]], list[Move]]) -> None:
    """The same, further out."""
    assert hold(conversation) == []
