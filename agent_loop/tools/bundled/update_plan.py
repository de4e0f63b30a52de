"""Tells the person what the model is about to do, step by step, and how far it is."""

from typing import Annotated

from pydantic import BaseModel, Field

from agent_loop.cards import Card
from agent_loop.events.facts import PlanChanged, PlanEntry, PlanPriority, PlanStatus
from agent_loop.jsonvalue import clean_text
from agent_loop.messages import Text
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolOutcome

ENTRIES_LIMIT = 50


class Task(BaseModel):
    content: Annotated[str, Field(min_length=1, max_length=500, description="The task, in one short line.")]
    status: Annotated[PlanStatus, Field(description="How far it is; one task is in_progress at a time.")]
    priority: Annotated[PlanPriority, Field(description="How much it matters.")] = "medium"


class UpdatePlanArguments(BaseModel):
    entries: Annotated[
        list[Task],
        Field(max_length=ENTRIES_LIMIT, description="All tasks in order; each call replaces the plan whole."),
    ]


class UpdatePlan:
    name = "update_plan"
    description = (
        "Show the person your plan for a task of several steps, and keep it true: send all entries again "
        "when one begins or ends. Needless for simple requests."
    )
    arguments = UpdatePlanArguments

    def parallel_safe(self, args: UpdatePlanArguments) -> bool:
        return False

    async def prepare(self, args: UpdatePlanArguments, ctx: ToolContext) -> Prepared:
        entries = tuple(
            PlanEntry(clean_text(" ".join(task.content.split())), task.priority, task.status)
            for task in args.entries
        )
        done = sum(1 for entry in entries if entry.status == "completed")
        title = f"Plan: {done} of {len(entries)} done" if entries else "Plan: cleared"
        return Prepared(Card(kind="think", title=title), Effect("none"), entries)

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        ctx.append(PlanChanged(ctx.turn, ctx.step, prepared.state))
        return ToolOutcome(content=(Text("The person sees the plan."),))
