"""update_plan: what the person is told of the model's plan."""

import pytest
from pydantic import ValidationError

from agent_loop.events.facts import PlanChanged, PlanEntry
from agent_loop.tools.bundled.update_plan import ENTRIES_LIMIT, UpdatePlan
from agent_loop.tools.tool import Effect
from tests.doubles.workshop import Workshop, said

PLAN = UpdatePlan()


async def test_a_plan_is_told_whole_each_time(workshop: Workshop) -> None:
    """ACP, agent plan: each update replaces all entries."""
    tasks = [
        {"content": "Look  at\nit", "status": "completed", "priority": "high"},
        {"content": "Mend it", "status": "in_progress"},
    ]

    prepared = await workshop.prepare(PLAN, entries=tasks)
    outcome = await PLAN.run(prepared, workshop.context())

    assert (prepared.card.kind, prepared.card.title, prepared.effect) == (
        "think",
        "Plan: 1 of 2 done",
        Effect("none"),
    )
    assert workshop.facts == [
        PlanChanged(
            1,
            1,
            (PlanEntry("Look at it", "high", "completed"), PlanEntry("Mend it", "medium", "in_progress")),
        )
    ]
    assert said(outcome) == "The person sees the plan."
    assert not PLAN.parallel_safe(PLAN.arguments(entries=[]))


async def test_a_plan_may_be_cleared(workshop: Workshop) -> None:
    """ACP, agent plan: no entries, no plan."""
    prepared = await workshop.prepare(PLAN, entries=[])
    await PLAN.run(prepared, workshop.context())

    assert prepared.card.title == "Plan: cleared"
    assert workshop.facts == [PlanChanged(1, 1, ())]


@pytest.mark.parametrize(
    "entries",
    [
        [{"content": "", "status": "pending"}],
        [{"content": "x", "status": "done"}],
        [{"content": "x", "status": "pending", "priority": "urgent"}],
        [{"content": "x" * 501, "status": "pending"}],
        [{"content": "x", "status": "pending"}] * (ENTRIES_LIMIT + 1),
    ],
    ids=["empty", "status", "priority", "long", "many"],
)
def test_what_is_no_plan_is_refused(entries: list[dict[str, str]]) -> None:
    """ACP, agent plan: a closed set of states and priorities."""
    with pytest.raises(ValidationError):
        PLAN.arguments.model_validate({"entries": entries})
