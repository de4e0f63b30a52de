"""The pause in a long answer: for its readers, and for everybody else."""

import pytest
from anyio.lowlevel import checkpoint

from agent_loop.chunks import Finish
from agent_loop.events.facts import (
    AssistantChunk,
)
from agent_loop.events.moments import Pace
from agent_loop.loop import step
from tests.doubles.loop_rig import ask, at, ends, of_type, open_rig
from tests.doubles.model import said, text


@pytest.mark.parametrize(("chunks", "pauses"), [(62, 0), (63, 1), (130, 2)])
async def test_a_long_answer_waits_for_its_readers_every_so_often(chunks: int, pauses: int) -> None:
    """Contract 7: `agent/pace` every 64 chunks."""
    paced: list[int] = []

    async with open_rig([*said("x" * chunks)[1:-1], Finish("stop")]) as rig:
        agent = await rig.agent()

        async def pace(moment: Pace) -> None:
            assert moment == Pace("s1")
            paced.append(len(of_type(agent, AssistantChunk)))

        rig.bus.on(Pace, pace)
        await ask(agent)

        assert paced == [64 * (at + 1) for at in range(pauses)]


async def test_a_reader_who_never_comes_does_not_hold_up_a_cancel() -> None:
    """Contract 7: the pause lies inside the token's scope."""
    async with open_rig([*said("x" * 99), Finish("stop")]) as rig:
        agent = await rig.agent()

        async def stuck(moment: Pace) -> None:
            agent.cancel()
            await checkpoint()
            raise AssertionError("not cancelled")

        rig.bus.on(Pace, stuck)
        await ask(agent)

        assert ends(agent) == ["aborted"]


async def test_an_answer_nobody_paces_lets_others_run_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Our promise: a provider that never waits starves nobody."""
    monkeypatch.setattr(step, "PACE_EVERY", 4)

    async def never_waits(_: str) -> None:
        """Give nobody a chance."""

    async with open_rig(text("xxxxxxxx")) as rig:
        agent = await rig.agent()
        rig.model.at_point = never_waits
        at(agent, AssistantChunk, lambda _: rig.group.start_soon(stops), nth=2)

        async def stops() -> None:
            agent.cancel()

        await ask(agent)

        assert (ends(agent), len(of_type(agent, AssistantChunk))) == (["aborted"], 4)
