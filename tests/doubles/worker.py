"""The tool `work`: its preparation and its body are the test's."""

from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
from pydantic import BaseModel

from agent_loop.cards import Card
from agent_loop.messages import Text
from agent_loop.tools.tool import Effect, EffectKind, Prepared, ToolContext, ToolOutcome


class WorkArguments(BaseModel):
    """`safe` calls may run beside their neighbours; `job` tells calls apart."""

    job: str = ""
    safe: bool = False
    effect: EffectKind = "none"


Body = Callable[[ToolContext, str], Awaitable[ToolOutcome | None]]


class Worker:
    """A tool whose body is a function of the context and the job.

    Attributes:
        body: Does the work; None for an outcome says "did JOB".
        on_prepare: Awaited while the call is looked at.
        began: The ids of calls whose body began, in order.
    """

    name = "work"
    description = "Works."
    arguments = WorkArguments

    def __init__(self, name: str = "work") -> None:
        self.name = name
        self.began: list[str] = []
        self.body: Body = _just_done
        self.on_prepare: Callable[[ToolContext, str], Awaitable[object]] = _just_done

    def parallel_safe(self, args: WorkArguments) -> bool:
        return args.safe

    async def prepare(self, args: WorkArguments, ctx: ToolContext) -> Prepared:
        await self.on_prepare(ctx, args.job)
        return Prepared(Card("other", f"Work {args.job}"), Effect(args.effect), args.job)

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        self.began.append(ctx.call_id)
        outcome = await self.body(ctx, prepared.state)
        return ToolOutcome((Text(f"did {prepared.state}"),)) if outcome is None else outcome


class Meeting:
    """A body that waits until so many calls are in it: proof that they ran side by side."""

    def __init__(self, expected: int) -> None:
        self._missing = expected
        self._all_here = anyio.Event()

    async def __call__(self, ctx: ToolContext, job: str) -> None:
        self._missing -= 1
        if self._missing == 0:
            self._all_here.set()
        with anyio.fail_after(1):
            await self._all_here.wait()


async def hang(ctx: ToolContext, job: str) -> None:
    """A body that waits to be cancelled."""
    await anyio.sleep_forever()


async def _just_done(ctx: ToolContext, job: str) -> None:
    await anyio.lowlevel.checkpoint()
