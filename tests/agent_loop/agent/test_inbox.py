"""The inbox: two queues and one sleeper."""

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.agent.inbox import Inbox, Waiting
from agent_loop.messages import USER


def message(name: str) -> Waiting:
    return Waiting(name, (), USER)


@pytest.fixture
def inbox() -> Inbox:
    return Inbox()


async def woken(inbox: Inbox) -> None:
    with anyio.fail_after(1):
        await inbox.wait()


async def sleeps(inbox: Inbox) -> bool:
    with anyio.move_on_after(0.01) as scope:
        await inbox.wait()
    return scope.cancelled_caught


async def test_queued_messages_come_out_in_order_and_once(inbox: Inbox) -> None:
    """Loop specification 8.6.1."""
    inbox.put_queued(message("a"))
    inbox.put_queued(message("b"))
    assert inbox.queued == 2

    assert inbox.take_queued() == (message("a"), message("b"))
    assert (inbox.take_queued(), inbox.queued) == ((), 0)


async def test_steering_has_a_queue_of_its_own(inbox: Inbox) -> None:
    """Loop specification 8.6.2."""
    inbox.put_queued(message("queued"))
    inbox.put_steering(message("s1"))
    inbox.put_steering(message("s2"))

    assert (inbox.queued, inbox.steering) == (1, 2)
    assert [inbox.next_steering(), inbox.next_steering(), inbox.next_steering()] == [
        message("s1"),
        message("s2"),
        None,
    ]
    assert inbox.take_queued() == (message("queued"),)


async def test_waiting_ends_at_once_when_something_is_queued(inbox: Inbox) -> None:
    """Loop specification 8.6.3."""
    inbox.put_queued(message("a"))

    await woken(inbox)
    await woken(inbox)


async def test_a_message_wakes_the_sleeper_and_steering_does_not(inbox: Inbox) -> None:
    """Loop specification 8.6.4 and 4.1.3."""
    async with anyio.create_task_group() as group:
        group.start_soon(woken, inbox)
        await checkpoint()
        inbox.put_queued(message("a"))

    inbox.take_queued()
    inbox.put_steering(message("s"))
    assert await sleeps(inbox)


async def test_a_wake_is_kept_for_a_sleeper_who_comes_late_and_then_spent(inbox: Inbox) -> None:
    """Our promise: a queue emptied by a cancel still lets the driver look, so that waiters are released."""
    inbox.put_queued(message("a"))
    inbox.clear()

    await woken(inbox)

    assert await sleeps(inbox)


async def test_a_closed_inbox_lets_everybody_go(inbox: Inbox) -> None:
    """Loop specification 8.6.5: disposal releases the wait, now and later."""
    async with anyio.create_task_group() as group:
        group.start_soon(woken, inbox)
        await checkpoint()
        inbox.close()

    await woken(inbox)
    await woken(inbox)


async def test_clearing_names_what_was_dropped(inbox: Inbox) -> None:
    """Our promise: whoever waits for a message hears that no turn will carry it."""
    inbox.put_steering(message("s"))
    inbox.put_queued(message("q"))

    assert inbox.clear() == ("q", "s")
    assert (inbox.clear(), inbox.queued, inbox.steering) == ((), 0, 0)


async def test_untaken_steering_stands_behind_what_is_queued(inbox: Inbox) -> None:
    """Loop specification 4.1.5."""
    inbox.put_steering(message("s"))
    inbox.put_queued(message("q"))

    inbox.requeue_steering()

    assert (inbox.take_queued(), inbox.steering) == ((message("q"), message("s")), 0)
