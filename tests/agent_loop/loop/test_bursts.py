"""Messages in any rhythm: none is lost, none comes twice, none overtakes another."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_loop.events.facts import TurnStart, UserMessage
from agent_loop.events.moments import StatusChanged
from agent_loop.messages import Text
from tests.doubles.loop_rig import ends, of_type, open_rig, settle
from tests.doubles.model import text

RHYTHMS = st.lists(st.integers(1, 4), min_size=1, max_size=5)
FEW = settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@FEW
@given(RHYTHMS, st.booleans())
async def test_every_message_is_logged_once_and_in_order(bursts: list[int], settled: bool) -> None:
    """Loop specification 8.6.9 to 11: turns are contiguous, never more than messages."""
    async with open_rig(*[text("ok")] * sum(bursts)) as rig:
        statuses = rig.heard(StatusChanged)
        agent = await rig.agent()
        sent: list[str] = []
        for burst in bursts:
            sent += [agent.send([Text(f"message {at}")]) for at in range(burst)]
            if settled:
                await settle(agent)
        await settle(agent)

        turns = of_type(agent, TurnStart)
        assert [fact.id for fact in of_type(agent, UserMessage)] == sent
        assert [name for fact in turns for name in fact.message_ids] == sent
        assert [fact.turn for fact in turns] == list(range(1, len(turns) + 1))
        assert len(turns) == (len(bursts) if settled else 1)
        assert set(ends(agent)) == {"completed"}
        assert all(one.status != other.status for one, other in pairwise(statuses))


@pytest.mark.parametrize("messages", [1, 6])
async def test_a_burst_is_one_turn_and_one_idle(messages: int) -> None:
    """Loop specification 8.6.9 and 22."""
    async with open_rig(text("ok")) as rig:
        statuses = rig.heard(StatusChanged)
        agent = await rig.agent()
        for at in range(messages):
            agent.send([Text(f"message {at}")])
        await settle(agent)

        assert ends(agent) == ["completed"]
        assert [moment.status for moment in statuses] == ["running", "idle"]
