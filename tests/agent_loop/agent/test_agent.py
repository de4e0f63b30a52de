"""The agent handle by itself, without a driver: its verbs."""

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from agent_loop.agent.agent import ReactLoopAgent
from agent_loop.errors import Disposed
from agent_loop.events.facts import ContextMessage, EndReason, Fact, Trigger, TurnEnd, TurnStart
from agent_loop.events.moments import Discarded, Queued
from agent_loop.messages import USER, Text
from tests.agent_loop.agent.alone import HI, Alone
from tests.doubles.loop_rig import types

PLUGIN = {"kind": "plugin", "plugin": "p"}
INJECTED = ["turn/start", "context/message", "turn/end"]
VERBS: list[Callable[[ReactLoopAgent], object]] = [
    lambda agent: agent.send(HI),
    lambda agent: agent.steer(HI),
    lambda agent: agent.inject(HI, PLUGIN),
]


def test_a_message_sent_is_announced_under_the_id_its_sender_got(alone: Alone) -> None:
    """Contract 1: the UUID `send` returns is the only key to a prompt's turn. Loop specification 8.3.14."""
    sent = alone.agent.send(HI)
    from_plugin = alone.agent.send(HI, PLUGIN)

    assert UUID(sent)
    assert alone.heard == [
        Queued("s", sent, HI, USER, steering=False),
        Queued("s", from_plugin, HI, PLUGIN, steering=False),
    ]
    assert alone.agent.status == "idle"


def test_steering_is_announced_as_such_and_is_a_prompt_while_idle(alone: Alone) -> None:
    """Loop specification 8.2.6 and 8.3.14."""
    idle = alone.agent.steer(HI, PLUGIN)
    alone.agent.set_status("running")
    steered = alone.agent.steer(HI, PLUGIN)

    assert [moment for moment in alone.heard if isinstance(moment, Queued)] == [
        Queued("s", idle, HI, PLUGIN, steering=False),
        Queued("s", steered, HI, PLUGIN, steering=True),
    ]
    assert (alone.agent.inbox.queued, alone.agent.inbox.steering) == (1, 1)


@pytest.mark.parametrize("error", [RuntimeError("no"), asyncio.CancelledError()])
def test_a_raising_queued_listener_is_no_affair_of_the_sender(alone: Alone, error: BaseException) -> None:
    """Our promise: the message is queued, so `send` must not look as if it were not."""

    def refuses(_: Queued) -> None:
        raise error

    alone.bus.on(Queued, refuses)

    assert alone.agent.send(HI)
    assert alone.agent.inbox.queued == 1


@pytest.mark.parametrize("source", [{"kind": float("nan")}, {"kind": "\ud800"}, {"kind": object()}])
@pytest.mark.parametrize("verb", ["send", "steer", "inject"])
def test_a_source_that_is_not_json_is_refused_at_the_seam(
    alone: Alone, verb: str, source: dict[str, Any]
) -> None:
    """Contract 1: open payloads are checked once, where they enter. Loop specification 8.6.20."""
    with pytest.raises(ValueError, match=r"\$\.kind"):
        getattr(alone.agent, verb)(HI, source)

    assert (alone.agent.inbox.queued, alone.log.next_seq, alone.heard) == (0, 0, [])


def test_a_source_is_copied(alone: Alone) -> None:
    """Loop specification 9.39: nothing mutable is shared with callers."""
    source = {"kind": "plugin", "plugin": "p"}
    alone.agent.send(HI, source)
    source["plugin"] = "changed"

    (message,) = alone.agent.inbox.take_queued()
    assert dict(message.source) == PLUGIN


@pytest.mark.parametrize("verb", VERBS)
def test_a_disposed_agent_takes_nothing_more(alone: Alone, verb: Callable[[ReactLoopAgent], object]) -> None:
    """Loop specification 8.6.12 to 14."""
    alone.agent.begin_disposal()

    with pytest.raises(Disposed, match="agent s is disposed"):
        verb(alone.agent)

    assert (alone.agent.inbox.queued, alone.log.next_seq) == (0, 0)


def test_context_injected_while_idle_is_a_turn_of_its_own(alone: Alone) -> None:
    """Loop specification 8.2.7 and 4.6.50: the model is not run and nobody is woken."""
    alone.agent.inject(HI, PLUGIN)
    alone.agent.inject(HI, PLUGIN)

    assert types(alone.log) == INJECTED * 2
    start, context, end = list(alone.log)[3:]
    assert isinstance(start, TurnStart)
    assert start == TurnStart(2, Trigger("injection", PLUGIN), ())
    assert (context, end) == (ContextMessage(2, HI, PLUGIN), TurnEnd(2, EndReason("completed")))
    assert (alone.agent.status, alone.heard) == ("idle", [])


def test_context_joins_a_turn_that_the_log_says_is_open(alone: Alone) -> None:
    """Loop specification 8.6.15: the log decides, whatever the status."""
    alone.log.append(TurnStart(1, Trigger("message", USER), ()))
    alone.agent.inject(HI, PLUGIN)
    alone.log.append(TurnEnd(1, EndReason("completed")))
    alone.agent.inject(HI, PLUGIN)

    assert types(alone.log) == ["turn/start", "context/message", "turn/end", *INJECTED]


@pytest.mark.parametrize(
    ("kind", "logged"),
    [(TurnStart, ["turn/start", "turn/end"]), (ContextMessage, INJECTED), (TurnEnd, INJECTED)],
)
def test_an_injection_closes_its_turn_although_an_observer_raises(
    alone: Alone, kind: type[Fact], logged: list[str]
) -> None:
    """Loop specification 4.6.51; contract 1: the exception reaches the caller, who appended."""
    alone.raise_at(kind)

    with pytest.raises(RuntimeError, match="at"):
        alone.agent.inject(HI, PLUGIN)

    assert types(alone.log) == logged


def test_context_waits_while_results_are_owed(alone: Alone) -> None:
    """Loop specification 6.24: nothing may stand between a call and its result."""
    alone.log.append(TurnStart(1, Trigger("message", USER), ()))
    alone.agent.hold_context()
    alone.agent.inject((Text("a"),), PLUGIN)
    alone.agent.inject((Text("b"),), PLUGIN)
    assert types(alone.log) == ["turn/start"]

    alone.agent.release_context()
    alone.agent.inject((Text("c"),), PLUGIN)

    assert list(alone.log)[1:] == [ContextMessage(1, (Text(text),), PLUGIN) for text in "abc"]


def test_all_that_waited_is_logged_although_an_observer_raises(alone: Alone) -> None:
    """Our promise: one listener's trouble costs no context."""
    alone.log.append(TurnStart(1, Trigger("message", USER), ()))
    alone.raise_at(ContextMessage)
    alone.agent.hold_context()
    alone.agent.inject(HI, PLUGIN)
    alone.agent.inject(HI, PLUGIN)

    with pytest.raises(RuntimeError, match="at 1"):
        alone.agent.release_context()

    assert types(alone.log) == ["turn/start", "context/message", "context/message"]


def test_cancelling_drops_and_names_what_waits_and_fires_the_token(alone: Alone) -> None:
    """Contract 6: both queues, then the token."""
    token = alone.agent.open_token()
    queued = alone.agent.send(HI)
    alone.agent.set_status("running")
    steered = alone.agent.steer(HI)

    alone.agent.cancel("enough", "client")

    assert alone.heard[-1] == Discarded("s", (queued, steered))
    assert (alone.agent.inbox.queued, alone.agent.inbox.steering) == (0, 0)
    assert (token.cause, token.text) == ("client", "enough")


def test_aborting_keeps_what_waits(alone: Alone) -> None:
    """Contract 6: `abort` stops the turn only."""
    token = alone.agent.open_token()
    alone.agent.send(HI)

    alone.agent.abort()

    assert (token.cause, token.text, alone.agent.inbox.queued) == ("plugin", "aborted", 1)


def test_a_cancel_without_words_says_cancelled(alone: Alone) -> None:
    """Loop specification 8.1.5."""
    token = alone.agent.open_token()

    alone.agent.cancel()

    assert (token.cause, token.text) == ("caller", "cancelled")


def test_stopping_an_idle_or_disposed_agent_is_nothing(alone: Alone) -> None:
    """Loop specification 4.4.41: cancel never raises."""
    alone.agent.cancel()
    alone.agent.abort()
    assert alone.heard == []

    alone.agent.begin_disposal()
    alone.agent.cancel()
    alone.agent.abort()


def test_a_token_that_was_dropped_is_out_of_reach(alone: Alone) -> None:
    """Loop specification 4.4.36: a cancel after the turn is none of its business."""
    token = alone.agent.open_token()
    alone.agent.drop_token()

    alone.agent.cancel()

    assert not token.fired


def test_a_raising_discarded_listener_does_not_save_the_turn(alone: Alone) -> None:
    """Loop specification 4.4.41: cancel never raises, and does all of its work."""
    token = alone.agent.open_token()
    alone.bus.on(Discarded, lambda _: (_ for _ in ()).throw(RuntimeError("no")))
    alone.agent.send(HI)

    alone.agent.cancel()

    assert (token.fired, alone.agent.inbox.queued) == (True, 0)
