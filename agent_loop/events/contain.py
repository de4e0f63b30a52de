"""Keeps one task's trouble to itself.

A child of a task group that ends with a CancelledError nobody asked for (it awaited a future that
somebody else cancelled) silently ends the whole group. Whoever runs foreign code asks `stray_cancel`,
and passes a stray one on as a `StrayCancel`, so that one `except Exception` contains it.
"""

import asyncio
from collections.abc import Awaitable, Callable


class StrayCancel(Exception):
    """Foreign code waited for something that somebody else had cancelled; an error like any other."""

    def __init__(self, cause: asyncio.CancelledError) -> None:
        super().__init__("it waited for something that was cancelled")
        self.__cause__ = cause


def stray_cancel() -> bool:
    """Whether the CancelledError being handled was never asked of this task."""
    task = asyncio.current_task()
    return task is None or task.cancelling() == 0


async def supervise(
    name: str, run: Callable[[], Awaitable[object]], on_fail: Callable[[str, BaseException], object]
) -> None:
    """Run a long-lived task: one raise is handed to `on_fail(name, error)`, never to the task group."""
    try:
        await run()
    except Exception as error:
        on_fail(name, error)
    except asyncio.CancelledError as error:
        if not stray_cancel():
            raise
        on_fail(name, error)
