"""What every log must obey: each rule broken once, and what is allowed."""

from copy import copy

import pytest

from agent_loop.chunks import TextDelta
from agent_loop.events import facts as f
from agent_loop.messages import USER, Text, ToolCallBlock
from agent_loop.session.invariants import InvariantError, Invariants
from tests.doubles.facts import one_turn, placed_facts

Facts = list[f.LoggedFact]

START = f.TurnStart(1, f.Trigger("message", USER), ("m1",))
END = f.TurnEnd(1, f.EndReason("completed"))
STEP, STEPPED = f.StepStart(1, 1), f.StepEnd(1, 1)
ASKED = f.AssistantMessage(1, 1, 1, (Text("so"), ToolCallBlock("c1", "t", "{}")))
CALLED = f.ToolCall(1, 1, "c1", "t", "{}", None)
STARTED = f.ToolStarted(1, 1, "c1")
GAVE = f.ToolResult(1, 1, "c1", (Text("done"),), False, "ran")
OPEN: Facts = [START, STEP]


def fresh(facts: Facts) -> Facts:
    """Copies, placed: one fact may stand in several rows of a table."""
    return placed_facts([copy(fact) for fact in facts])


@pytest.mark.parametrize(
    "facts",
    [
        [],
        one_turn(),
        [*one_turn(), *one_turn(2, 7)],
        fresh([*OPEN, ASKED, CALLED, STARTED, GAVE, STEPPED, END]),
        fresh([*OPEN, ASKED, CALLED, GAVE, STEPPED, f.StepStart(1, 2), f.StepEnd(1, 2), END]),
        fresh([*OPEN, ASKED, CALLED, f.PermissionAsked(1, 1, "c1", ()), GAVE, STEPPED, END]),
        fresh([START, f.SteeringMessage(1, "m9", (), USER), f.ContextMessage(1, (), USER), END]),
        fresh([f.PluginFact("p", "k", None), START, f.PluginFact("p", "k", None), END]),
    ],
)
def test_a_sound_log_passes(facts: Facts) -> None:
    """Loop specification 3.2, and session facts anywhere."""
    Invariants().check_all(facts)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ([START, START], "turn 1 is still open"),
        ([f.TurnStart(2, START.trigger, ())], "expected turn 1"),
        ([START, END, f.TurnStart(3, START.trigger, ())], "expected turn 2"),
        ([END], "outside its turn"),
        ([START, f.TurnEnd(2, END.reason)], "outside its turn"),
        ([f.ContextMessage(1, (), USER)], "outside its turn"),
        ([START, END, f.ErrorRecorded(1, "late", "UNKNOWN")], "outside its turn"),
        ([f.StepStart(1, 1)], "outside its turn"),
        ([START, STEP, END], "step 1 is still open"),
        ([START, STEP, f.StepStart(1, 2)], "step 1 is still open"),
        ([START, f.StepStart(1, 2)], "expected step 1"),
        ([START, f.StepEnd(1, 1)], "outside its step"),
        ([START, STEP, f.StepEnd(1, 2)], "outside its step"),
        ([START, STEP, STEPPED, ASKED], "outside its step"),
        ([START, f.AssistantChunk(1, 1, 1, TextDelta(0, "a"))], "outside its step"),
        ([*OPEN, f.UsageRecorded(2, 1, None)], "outside its turn"),  # type: ignore[arg-type]
        ([*OPEN, CALLED], "the model made no call c1"),
        ([*OPEN, ASKED, ASKED], "call id c1 is taken"),
        ([*OPEN, ASKED, CALLED, GAVE, ASKED], "call id c1 is taken"),
        ([*OPEN, ASKED, CALLED, CALLED], "call c1 is logged already"),
        ([*OPEN, ASKED, STARTED], "call c1 cannot start here"),
        ([*OPEN, ASKED, CALLED, STARTED, STARTED], "call c1 cannot start here"),
        ([*OPEN, ASKED, GAVE], "call c1 cannot end here"),
        ([*OPEN, ASKED, CALLED, GAVE, GAVE], "call c1 cannot end here"),
        ([*OPEN, ASKED, CALLED, GAVE, STARTED], "call c1 cannot start here"),
        ([*OPEN, ASKED, CALLED, STEPPED], r"no result for \['c1'\]"),
        ([START, f.UserMessage(1, "m2", (), USER)], "m2 was not announced"),
    ],
)
def test_a_broken_log_is_refused_at_the_fact_that_breaks_it(facts: Facts, words: str) -> None:
    """Loop specification 3.2: the only commit and replay boundary is the turn."""
    placed = fresh(facts)
    rules = Invariants()
    for fact in placed[:-1]:
        rules.check(fact)

    with pytest.raises(InvariantError, match=f"fact {len(placed) - 1} .*{words}"):
        rules.check(placed[-1])


def test_a_gap_in_the_numbers_is_refused() -> None:
    """Loop specification 3.1: seq is the index."""
    with pytest.raises(InvariantError, match="expected number 0"):
        Invariants().check_all(placed_facts([f.PluginFact("p", "k", None)], 1))


def test_a_log_at_rest_has_no_open_turn() -> None:
    """Our promise: one `turn/end` for each `turn/start`."""
    with pytest.raises(InvariantError, match="turn 1 was never closed"):
        Invariants().check_all(placed_facts([START]))
