"""The debugging plugin: a turn that breaks a rule of the log fails loudly."""

import pytest

from agent_loop.events.facts import StepStart, TurnStart
from agent_loop.events.moments import SessionCreated
from agent_loop.plugins.invariants import activate
from agent_loop.plugins.scope import PluginScope
from agent_loop.session.header import SessionHeader
from agent_loop.session.invariants import InvariantError
from tests.doubles.facts import one_turn
from tests.doubles.loop_rig import Rig, ask, ends, open_rig
from tests.doubles.model import calls, text


def watched(rig: Rig) -> PluginScope:
    scope = PluginScope(
        bus=rig.bus, agents=rig.agents, sessions=rig.sessions, tools=rig.tools, prompt=rig.prompt
    )
    activate(scope)
    return scope


async def test_a_sound_session_is_not_disturbed() -> None:
    """Loop specification 8: the oracle of other tests."""
    async with open_rig(calls(("c1", "{}")), text("done")) as rig:
        watched(rig)
        agent = await rig.agent()
        await ask(agent)

        assert ends(agent) == ["completed"]


async def test_a_broken_rule_reaches_whoever_broke_it() -> None:
    """Loop specification 3.2: raised out of the append."""
    async with open_rig() as rig:
        scope = watched(rig)
        session, _ = rig.sessions.create(SessionHeader("s", 1), one_turn())

        with pytest.raises(InvariantError, match="expected turn 2"):
            session.log.append(TurnStart(7, one_turn()[0].trigger, ()))  # type: ignore[union-attr]

        scope.close()
        session.log.append(StepStart(9, 9))


async def test_a_stored_log_is_checked_before_it_goes_on() -> None:
    """Loop specification 3.2: state is rebuilt by replaying; a log that is broken already is not resumed."""
    async with open_rig() as rig:
        watched(rig)

        with pytest.raises(InvariantError):
            rig.sessions.create(SessionHeader("s", 1), one_turn(turn=2))

        assert rig.sessions.get("s") is None


async def test_a_session_that_is_gone_already_is_left_alone() -> None:
    """Our promise: a listener before this one may have refused it."""
    async with open_rig() as rig:
        watched(rig)
        rig.bus.emit(SessionCreated("nobody"))
