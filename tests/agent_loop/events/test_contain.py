"""Telling a stray cancellation from a real one, and long-lived tasks that end in words."""

import asyncio

import anyio
import pytest

from agent_loop.events.contain import stray_cancel, supervise


def test_outside_any_task_every_cancellation_is_a_stray_one() -> None:
    """Our promise: a callback has nobody who could cancel it."""

    async def main() -> bool:
        asked: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(lambda: asked.set_result(stray_cancel()))
        return await asked

    assert asyncio.run(main())


async def test_a_task_that_was_cancelled_says_so() -> None:
    """Our promise: anyio's cancellation and asyncio's are both real."""
    seen: list[bool] = []

    async def waits() -> None:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            seen.append(stray_cancel())
            raise

    with anyio.move_on_after(0):
        await waits()
    task = asyncio.create_task(waits())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])

    assert seen == [False, False]
    assert stray_cancel()


@pytest.mark.parametrize("error", [RuntimeError("bug"), asyncio.CancelledError("stray")])
async def test_a_supervised_task_hands_over_what_it_raised_and_spares_its_group(error: BaseException) -> None:
    """Contract 6: one raise is reported and disposes its owner, never the server."""
    failed: list[tuple[str, BaseException]] = []
    neighbour: list[str] = []

    async def fails() -> None:
        raise error

    async def goes_on() -> None:
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        neighbour.append("done")

    async with anyio.create_task_group() as group:
        group.start_soon(supervise, "worker", fails, lambda name, error: failed.append((name, error)))
        group.start_soon(supervise, "neighbour", goes_on, lambda name, error: failed.append((name, error)))

    assert (failed, neighbour) == ([("worker", error)], ["done"])


async def test_a_supervised_task_can_be_cancelled() -> None:
    """Contract 6: a real cancellation is no failure."""
    failed: list[str] = []

    async with anyio.create_task_group() as group:
        group.start_soon(supervise, "worker", anyio.sleep_forever, lambda name, _: failed.append(name))
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()

    assert failed == []
