"""Looks at jobs that run_command left in the background, and ends them."""

from typing import Annotated

from pydantic import BaseModel, Field

from agent_loop.cards import Card, CardOutput
from agent_loop.messages import Text
from agent_loop.tools.bounds import bounded_input
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolOutcome, ToolRefused
from agent_loop.workspace.jobs import Job

LONGEST_WAIT_S = 60.0

_JobId = Annotated[str, Field(description="Id that run_command gave, such as job-1.")]


class JobOutputArguments(BaseModel):
    job: _JobId
    wait_s: Annotated[
        float,
        Field(
            ge=0,
            le=LONGEST_WAIT_S,
            description="Seconds to wait for something new; it is told as soon as it comes.",
        ),
    ] = 0.0


class JobKillArguments(BaseModel):
    job: _JobId


class JobOutput:
    name = "job_output"
    description = "What a background job printed since the last look, and whether it still runs."
    arguments = JobOutputArguments

    def parallel_safe(self, args: JobOutputArguments) -> bool:
        return False

    async def prepare(self, args: JobOutputArguments, ctx: ToolContext) -> Prepared:
        job = _job(ctx, args.job)
        card = Card(
            "execute", f"Output of {job.id}", input=bounded_input(args.model_dump(exclude_unset=True))
        )
        return Prepared(card, Effect("none"), (job, args.wait_s))

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        job, wait_s = prepared.state
        await job.wait(wait_s)
        return _outcome(prepared, job)


class JobKill:
    name = "job_kill"
    description = "End a background job and all it started; gives what it printed since the last look."
    arguments = JobKillArguments

    def parallel_safe(self, args: JobKillArguments) -> bool:
        return False

    async def prepare(self, args: JobKillArguments, ctx: ToolContext) -> Prepared:
        job = _job(ctx, args.job)
        card = Card("execute", f"End {job.id}", input=bounded_input(args.model_dump()))
        return Prepared(card, Effect("none"), job)

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        job: Job = prepared.state
        job.kill()
        await job.gone()
        return _outcome(prepared, job)


def how_it_ended(job: Job) -> str:
    """A job's end in words, for the model; empty while it runs."""
    if job.running:
        return ""
    if job.killed:
        return f"{job.id} was ended"
    if job.result is None:
        return f"{job.id} could not be run: {job.failure or 'it failed'}"
    if job.result.signal is not None:
        return f"{job.id} was killed by signal: {job.result.signal}"
    return f"{job.id} ended with exit code: {job.result.exit_code}"


def _job(ctx: ToolContext, job_id: str) -> Job:
    """Raises ToolRefused: this session has no such job; whose it may be otherwise is nobody's business."""
    job = None if ctx.workspace.jobs is None else ctx.workspace.jobs.get(job_id)
    if job is None:
        raise ToolRefused(f"there is no job {job_id[:100]!r} in this session.", code="NOT_FOUND")
    return job


def _outcome(prepared: Prepared, job: Job) -> ToolOutcome:
    text, is_partial = job.read()
    parts = [text.removesuffix("\n") or "(nothing new)"]
    if is_partial:
        parts.append("[part of the output is left out]")
    if job.result is not None and job.result.spill_path is not None:
        parts.append(f"[all of it is in {job.result.spill_path}; look into it with run_command]")
    parts.append(f"[{how_it_ended(job) or f'{job.id} still runs'}]")
    shown = (CardOutput(text, truncated=is_partial),) if text else ()
    return ToolOutcome((Text("\n".join(parts)),), card=prepared.card.with_status("pending", shown))
