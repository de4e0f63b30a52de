"""The cancel token: the truth about a turn's end, whatever the scopes of it noticed."""

import asyncio

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.agent.cancel_token import CancelToken, TurnCancelled


def fired() -> CancelToken:
    token = CancelToken()
    token.cancel("client", "enough")
    return token


def test_the_first_cause_wins() -> None:
    """Contract 6."""
    token = CancelToken()
    assert (token.fired, token.cause, token.text) == (False, None, "")

    token.cancel("plugin", "first")
    token.cancel("disposed", "second")

    assert (token.fired, token.cause, token.text) == (True, "plugin", "first")


def test_a_fired_token_raises_when_asked() -> None:
    """Contract 6: ask the token, never the scope."""
    CancelToken().raise_if_fired()

    with pytest.raises(TurnCancelled, match="enough"):
        fired().raise_if_fired()


async def test_firing_ends_a_waiting_scope() -> None:
    """Contract 6: `scope()` is a child scope that raises at its exit."""
    token, reached = CancelToken(), list[str]()

    async def waits() -> None:
        try:
            with token.scope():
                await anyio.sleep_forever()
        except TurnCancelled as error:
            reached.append(str(error))

    with anyio.fail_after(1):
        async with anyio.create_task_group() as group:
            group.start_soon(waits)
            group.start_soon(waits)
            await checkpoint()
            token.cancel("client", "enough")

    assert reached == ["enough", "enough"]


async def test_a_fired_token_ends_a_scope_at_its_first_await() -> None:
    """Contract 6: cancelled at entry when already fired."""
    reached: list[str] = []

    async def works() -> None:
        reached.append("before")
        await checkpoint()
        reached.append("after")

    with pytest.raises(TurnCancelled), fired().scope():
        await works()

    assert reached == ["before"]


async def test_a_scope_raises_although_no_await_followed_the_cancel() -> None:
    """Contract 6: checkpoint or not; anyio may never deliver a cancel made from the own task."""
    token = CancelToken()

    with pytest.raises(TurnCancelled), token.scope():
        token.cancel("caller", "")

    with pytest.raises(TurnCancelled), fired().scope():
        pass


async def test_an_error_in_a_cancelled_scope_becomes_its_cause() -> None:
    """Our promise: after a cancel, whatever went wrong as well is no failure of the turn."""
    token, error = CancelToken(), RuntimeError("late")

    def fails() -> None:
        token.cancel("caller", "")
        raise error

    with pytest.raises(TurnCancelled) as caught, token.scope():
        fails()

    assert caught.value.__cause__ is error


async def test_a_scope_of_a_token_that_did_not_fire_is_transparent() -> None:
    """Our promise: results, errors and stray cancellations pass."""
    token = CancelToken()

    with token.scope():
        await checkpoint()
    with pytest.raises(RuntimeError, match="own"), token.scope():
        raise RuntimeError("own")
    with pytest.raises(asyncio.CancelledError), token.scope():
        raise asyncio.CancelledError


async def test_a_cancellation_from_further_out_passes_a_fired_scope() -> None:
    """Contract 6: cancelling is normal; let it pass through."""
    with anyio.CancelScope() as outer:
        with CancelToken().scope():
            outer.cancel()
            await checkpoint()

    assert outer.cancelled_caught


async def test_a_quiet_scope_ends_early_and_says_nothing() -> None:
    """Our promise: for work whose outcome is looked at either way."""
    token, reached = CancelToken(), list[str]()

    with token.quiet_scope():
        token.cancel("caller", "")
        await checkpoint()
        reached.append("never")
    with token.quiet_scope():
        await checkpoint()
        reached.append("never")
    with pytest.raises(RuntimeError), token.quiet_scope():
        raise RuntimeError

    assert reached == []


async def test_a_scope_that_was_left_is_forgotten() -> None:
    """Our promise: a token fired later does not reach what runs after its scopes."""
    token, reached = CancelToken(), list[str]()
    with token.scope():
        pass
    with token.quiet_scope():
        pass

    token.cancel("caller", "")
    await checkpoint()
    reached.append("on")

    assert reached == ["on"]
