"""The agent handle by itself, without a driver: its status, and waiting for it."""

import logging

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.agent.agent import ReactLoopAgent
from agent_loop.events.moments import Discarded, StatusChanged
from tests.agent_loop.agent.alone import HI, Alone


async def pending(agent: ReactLoopAgent) -> bool:
    with anyio.move_on_after(0.01) as scope:
        await agent.when_idle()
    return scope.cancelled_caught


def test_a_status_is_told_once_and_disposed_is_the_last(alone: Alone) -> None:
    """Loop specification 4.5.44."""
    for status in ("idle", "running", "running", "idle", "running", "disposed", "idle", "running"):
        alone.agent.set_status(status)
    alone.agent.begin_disposal()

    statuses = [moment.status for moment in alone.heard if isinstance(moment, StatusChanged)]
    assert statuses == ["running", "idle", "running", "disposed"]


def test_a_raising_status_listener_is_a_line_in_the_log(
    alone: Alone, caplog: pytest.LogCaptureFixture
) -> None:
    """Loop specification 8.6.29 and 30."""
    alone.bus.on(StatusChanged, lambda _: (_ for _ in ()).throw(RuntimeError("no")))

    with caplog.at_level(logging.ERROR):
        alone.agent.set_status("running")

    assert alone.agent.status == "running"
    assert "a listener of agent/status raised" in caplog.text


def test_disposal_drops_what_waits_and_stops_the_turn_once(alone: Alone) -> None:
    """Loop specification 4.5.45 and 8.6.21."""
    token = alone.agent.open_token()
    sent = alone.agent.send(HI)

    alone.agent.begin_disposal()
    alone.agent.begin_disposal()

    assert alone.heard[1:] == [Discarded("s", (sent,)), StatusChanged("s", "disposed")]
    assert token.cause == "disposed"


async def test_waiting_for_an_idle_agent_is_no_wait(alone: Alone) -> None:
    """Loop specification 8.6.23."""
    with anyio.fail_after(1):
        await alone.agent.when_idle()


async def test_waiting_counts_what_is_queued_and_what_runs(alone: Alone) -> None:
    """Loop specification 8.6.24: quiescence is nothing running and nothing queued."""
    alone.agent.send(HI)
    assert await pending(alone.agent)

    alone.agent.inbox.take_queued()
    alone.agent.set_status("running")
    assert await pending(alone.agent)

    alone.agent.set_status("idle")
    assert not await pending(alone.agent)


async def test_waiting_goes_on_when_the_next_message_is_there_already(alone: Alone) -> None:
    """Loop specification 9.6: idle is not reported while replacement work is queued."""
    woken = anyio.Event()

    async def waits() -> None:
        await alone.agent.when_idle()
        woken.set()

    alone.agent.set_status("running")
    async with anyio.create_task_group() as group:
        group.start_soon(waits)
        await checkpoint()
        alone.bus.on(StatusChanged, lambda _: alone.agent.send(HI))
        alone.agent.set_status("idle")
        await checkpoint()
        await checkpoint()
        assert not woken.is_set()

        alone.agent.inbox.clear()
        alone.agent.set_status("idle")
        with anyio.fail_after(1):
            await woken.wait()


async def test_waiting_for_a_disposed_agent_is_waiting_for_its_loop(alone: Alone) -> None:
    """Loop specification 8.6.26 and 28."""
    alone.agent.set_status("running")
    woken: list[str] = []

    async def waits(name: str) -> None:
        await alone.agent.when_idle()
        woken.append(name)

    async with anyio.create_task_group() as group:
        group.start_soon(waits, "before")
        await checkpoint()
        alone.agent.begin_disposal()
        group.start_soon(waits, "after")
        await checkpoint()
        await checkpoint()
        assert woken == []

        alone.agent.done.set()

    assert sorted(woken) == ["after", "before"]
