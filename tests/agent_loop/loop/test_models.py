"""What the loop makes of what is known of a model: its tools, its window, its bill."""

import pytest

from agent_loop.chunks import Finish, Usage, UsageChunk
from agent_loop.events.facts import Cost, UsageRecorded
from agent_loop.events.waterfalls import REQUEST_ERROR, FailedRequest, Recovery
from agent_loop.llm.models import ModelInfo, Price
from tests.doubles.loop_rig import ask, of_type, open_rig
from tests.doubles.memory_store import MemoryStore
from tests.doubles.model import USAGE, calls, text

EURO = Price(input=1000.0, output=5000.0, cache_read=100.0, cache_write=0.0, currency="EUR")


@pytest.mark.parametrize(("info", "told"), [(ModelInfo(), ["work"]), (ModelInfo(tools=False), [])])
async def test_a_model_is_told_of_tools_when_it_takes_any(info: ModelInfo, told: list[str]) -> None:
    """Issue, model catalogue: local servers refuse a whole request for a tool it offers."""
    async with open_rig(text("a")) as rig:
        await ask(await rig.agent(info=info))

        assert [tool.name for tool in rig.model.requests[0].tools] == told


async def test_each_call_is_logged_with_the_window_and_the_bill_so_far() -> None:
    """Issue, usage: after each model call, cumulative."""
    async with open_rig(calls(("c1", "{}")), text("a")) as rig:
        agent = await rig.agent(info=ModelInfo(context_window=100, price=EURO))
        await ask(agent)

        assert of_type(agent, UsageRecorded) == [
            UsageRecorded(1, 1, USAGE, 100, Cost(0.02, 0.02, "EUR")),
            UsageRecorded(1, 2, USAGE, 100, Cost(0.02, 0.04, "EUR")),
        ]


@pytest.mark.parametrize("end", [Finish("stop"), Finish("error", "late", "server")])
async def test_an_answer_that_failed_is_on_the_bill_when_it_was_counted(end: Finish) -> None:
    """Issue, usage: after each model call; an empty answer is one that the provider charges for."""
    read = Usage(input_tokens=10)

    async def once_more(failed: FailedRequest, next: object) -> Recovery:
        return "retry"

    async with open_rig([UsageChunk(read), end], text("a")) as rig:
        rig.bus.around(REQUEST_ERROR, once_more)
        agent = await rig.agent(info=ModelInfo(price=EURO))
        await ask(agent)

        assert of_type(agent, UsageRecorded) == [
            UsageRecorded(1, 1, read, None, Cost(0.01, 0.01, "EUR")),
            UsageRecorded(1, 1, USAGE, None, Cost(0.02, 0.03, "EUR")),
        ]


async def test_the_bill_goes_on_after_a_restart_and_is_never_made_again() -> None:
    """Our promise: makers change prices; what was paid was paid."""
    store = MemoryStore()
    async with open_rig(text("a"), store=store) as rig:
        handle = await rig.handle(cwd="/work", info=ModelInfo(price=EURO))
        await ask(handle.agent)
        await handle.dispose()

    dearer = Price(2000.0, 10000.0, 0.0, 0.0, "EUR")
    async with open_rig(text("b"), store=store) as rig:
        handle = await rig.resume("s1", info=ModelInfo(price=dearer))
        await ask(handle.agent)

        assert [fact.cost for fact in of_type(handle.agent, UsageRecorded)] == [
            Cost(0.02, 0.02, "EUR"),
            Cost(0.04, 0.06, "EUR"),
        ]


async def test_of_an_unknown_model_only_the_tokens_are_logged() -> None:
    """cline PR14252: no guess at a window."""
    async with open_rig(text("a")) as rig:
        agent = await rig.agent()
        await ask(agent)

        assert of_type(agent, UsageRecorded) == [UsageRecorded(1, 1, USAGE, None, None)]
