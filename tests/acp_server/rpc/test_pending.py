"""An answer still to come: given once, in the tick of its settling."""

from typing import Any

from acp_server.errors import RpcError
from acp_server.rpc.pending import Pending


def test_only_the_first_answer_counts_and_ends_its_cancelling() -> None:
    """ACP: exactly one answer per request."""
    pending, told = Pending(), list[Any]()
    pending.on_cancel = lambda: None
    pending.attach(lambda result, error: told.append((result, error)))
    assert not pending.settled

    pending.settle(1)
    pending.settle(2)
    pending.fail(RpcError(-1, "no"))

    assert told == [(1, None)]
    assert pending.settled
    assert pending.on_cancel is None


def test_an_answer_given_before_anybody_can_hear_it_is_kept() -> None:
    """Our promise: a method may settle at once."""
    pending, told, error = Pending(), list[Any](), RpcError(-1, "no")

    pending.fail(error)
    pending.attach(lambda result, error: told.append((result, error)))

    assert told == [(None, error)]


def test_what_has_to_follow_an_answer_follows_right_behind_it() -> None:
    """Scenario B16: news of a session must not overtake the answer that names it."""
    early, late, told = Pending(), Pending(), list[str]()

    early.settle(1, after=lambda: told.append("behind the first"))
    early.attach(lambda *_: told.append("first"))
    late.attach(lambda *_: told.append("second"))
    late.settle(2, after=lambda: told.append("behind the second"))

    assert told == ["first", "behind the first", "second", "behind the second"]
