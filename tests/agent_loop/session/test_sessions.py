"""The store of live sessions: what is in it, and what an unhappy creation leaves behind."""

import pytest

from agent_loop.errors import Duplicate
from agent_loop.events.bus import Bus
from agent_loop.events.facts import TurnStart
from agent_loop.events.moments import SessionCreated
from agent_loop.messages import Text
from agent_loop.session.header import SessionHeader
from agent_loop.session.sessions import Sessions
from tests.doubles.clock import SteppingClock
from tests.doubles.facts import TIME_MS, one_turn


def test_a_session_is_found_by_its_id_until_it_is_taken_out() -> None:
    """Loop specification 1.5: the store lists in order of creation."""
    sessions = Sessions(Bus())
    first, remove = sessions.create(SessionHeader("a", 1))
    second, _ = sessions.create(SessionHeader("b", 1))

    assert (sessions.get("a"), sessions.get("c"), list(sessions)) == (first, None, [first, second])

    remove()
    remove()
    assert (sessions.get("a"), list(sessions)) == (None, [second])


def test_an_old_disposer_leaves_a_later_session_of_the_same_id_alone() -> None:
    """Loop specification 9.19: a disposer is bound to its object."""
    sessions = Sessions(Bus())
    _, remove = sessions.create(SessionHeader("a", 1))
    remove()
    later, _ = sessions.create(SessionHeader("a", 2))

    remove()

    assert sessions.get("a") is later


def test_a_live_id_is_taken() -> None:
    """Loop specification 1.5: a duplicate raises and changes nothing."""
    sessions = Sessions(Bus())
    first, _ = sessions.create(SessionHeader("a", 1))

    with pytest.raises(Duplicate, match="session a is live already"):
        sessions.create(SessionHeader("a", 2))

    assert list(sessions) == [first]


def test_a_relative_cwd_is_refused() -> None:
    """ACP, session setup: cwd must be an absolute path."""
    sessions = Sessions(Bus())

    with pytest.raises(ValueError, match="'here'"):
        sessions.create(SessionHeader("a", 1, "here"))

    assert list(sessions) == []


def test_a_creation_is_announced_once_the_session_can_be_found() -> None:
    """Loop specification 2: `session/created` after the insert."""
    bus, found = Bus(), list[object]()
    sessions = Sessions(bus)
    bus.on(SessionCreated, lambda moment: found.append(sessions.get(moment.session_id)))

    session, _ = sessions.create(SessionHeader("a", 1, "/w"))

    assert found == [session]


def test_a_raising_listener_undoes_the_creation() -> None:
    """Loop specification 2: propagates, and the id is free again."""
    bus = Bus()
    sessions = Sessions(bus)

    def refuses(_: SessionCreated) -> None:
        raise RuntimeError("no")

    dispose = bus.on(SessionCreated, refuses)
    with pytest.raises(RuntimeError, match="no"):
        sessions.create(SessionHeader("a", 1))

    dispose()
    sessions.create(SessionHeader("a", 1))


def test_a_session_folds_its_history_forward() -> None:
    """Our promise: what was derived once is not derived again, and deltas in between do not matter."""
    session, _ = Sessions(Bus(), clock=SteppingClock()).create(SessionHeader("a", 1), one_turn())
    before = session.messages()

    for fact in one_turn(2, text="more"):
        session.log.append(fact)

    after = session.messages()
    assert [message.content for message in before] == [(Text("hi"),), (Text("hello"),)]
    assert [message.content for message in after[2:]] == [(Text("hi"),), (Text("more"),)]
    assert all(old is new for old, new in zip(before, after, strict=False))
    assert session.messages() == after


def test_a_session_uses_the_clock_of_its_store() -> None:
    """Our promise: tests can stand the time still."""
    session, _ = Sessions(Bus(), clock=SteppingClock()).create(SessionHeader("a", 1))

    session.log.append(TurnStart(1, one_turn()[0].trigger, ()))  # type: ignore[union-attr]

    assert [fact.time for fact in session.log] == [TIME_MS + 1]
