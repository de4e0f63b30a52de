"""Runs of deltas: an object that stands for many facts, and gives each of them back."""

import pytest

from agent_loop.chunks import ReasoningDelta, TextDelta
from agent_loop.events.facts import AssistantChunk, AssistantRun, StepStart, facts_in


def run_of(*texts: str, dt_ms: tuple[int, ...]) -> AssistantRun:
    run = AssistantRun(1, 2, 3, 4, ReasoningDelta, 10, 1000)
    run.texts, run.dt_ms = list(texts), list(dt_ms)
    run.last_time = 1000 + sum(dt_ms)
    return run


def shown(fact: AssistantChunk) -> tuple[int, int, object]:
    assert (fact.turn, fact.step, fact.attempt) == (1, 2, 3)
    return fact.seq, fact.time, fact.chunk


@pytest.mark.parametrize("seq", [0, 10, 11, 12, 13])
def test_a_run_gives_back_its_facts_from_any_place(seq: int) -> None:
    """Contract 1: a cursor may stop inside a run."""
    run = run_of("a", "b", "c", dt_ms=(0, 5, 7))
    facts = [
        (10, 1000, ReasoningDelta(4, "a")),
        (11, 1005, ReasoningDelta(4, "b")),
        (12, 1012, ReasoningDelta(4, "c")),
    ]

    assert [shown(fact) for fact in run.facts_from(seq)] == [fact for fact in facts if fact[0] >= seq]


@pytest.mark.parametrize("seq", [0, 10, 11, 12])
def test_the_rest_of_a_run_stands_for_the_same_facts(seq: int) -> None:
    """Our promise: what the store gets of a growing run is what the log says."""
    run = run_of("a", "b", "c", dt_ms=(0, 5, 7))

    rest = run.rest_from(seq)

    assert rest is not None
    assert [shown(fact) for fact in rest.facts_from(0)] == [shown(fact) for fact in run.facts_from(seq)]
    assert (rest.last_time, rest.delta) == (run.last_time, run.delta)


def test_the_rest_of_a_run_is_the_readers_own_and_may_be_nothing() -> None:
    """Our promise: a run that grows on changes nothing a reader holds."""
    run = run_of("a", dt_ms=(0,))

    rest = run.rest_from(0)
    run.texts.append("later")

    assert rest is not None
    assert (rest.texts, facts_in(rest), facts_in(run), facts_in(StepStart(1, 1))) == (["a"], 1, 2, 1)
    assert run.rest_from(12) is None


def test_a_delta_keeps_its_class() -> None:
    """Contract 1: folding is lossless."""
    run = AssistantRun(1, 1, 1, 0, TextDelta, 0, 0)
    run.texts, run.dt_ms = ["a"], [0]

    assert run.facts_from(0)[0].chunk == TextDelta(0, "a")
