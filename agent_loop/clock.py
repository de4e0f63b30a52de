"""Tells the time, so that tests can stand it still."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns milliseconds since the epoch."""


def wall_clock() -> int:
    """Milliseconds since the epoch, by the system's clock."""
    return time.time_ns() // 1_000_000
