"""Times for people and for machines, from milliseconds since the epoch. Pure."""

from datetime import UTC, datetime
from typing import Final

_LATEST_MS: Final = 253_402_300_799_000


def utc_in_words(ms: int) -> str:
    """`2026-01-31 08:05 UTC`: the same wherever an export is read."""
    return f"{_utc(ms):%Y-%m-%d %H:%M} UTC"


def clock_time(ms: int) -> str:
    """`08:05:09`, in UTC."""
    return f"{_utc(ms):%H:%M:%S}"


def iso(ms: int) -> str:
    """ISO 8601 in UTC, to the second."""
    return f"{_utc(ms):%Y-%m-%dT%H:%M:%SZ}"


def local_in_words(ms: int) -> str:
    """`2026-01-31 09:05`, where the person is."""
    return f"{_utc(ms).astimezone():%Y-%m-%d %H:%M}"


def lasted(ms: int) -> str:
    """`0.4 s`, `12 s`, `3 min 20 s`, `2 h 5 min`."""
    seconds = max(ms, 0) / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _utc(ms: int) -> datetime:
    # A damaged log may tell any time; it is shown as the nearest there is.
    return datetime.fromtimestamp(min(max(ms, 0), _LATEST_MS) / 1000, UTC)
