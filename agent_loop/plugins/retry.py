"""Makes a failed model call again, in the same step, when waiting may help.

Owns which failures pass by themselves and how long to wait. That nothing of the failed answer reaches the
model belongs to the loop; that the person is told, to the fact logged here.

Waits are drawn from the whole range up to their limit, so that many agents whose provider went down do not
all come back in the same moment.
"""

import random
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from agent_loop.config.settings import RetrySettings
from agent_loop.errors import ErrorKind, ProviderError
from agent_loop.events.bus import Next
from agent_loop.events.facts import RequestRetried
from agent_loop.events.waterfalls import REQUEST_ERROR, FailedRequest, Recovery
from agent_loop.plugins.scope import PluginScope

PASSING: Final[frozenset[ErrorKind]] = frozenset(
    ("rate_limit", "overloaded", "server", "timeout", "transport", "malformed", "empty")
)
"""Failures that may be over in a moment; the others are the same until somebody does something."""

Sleep = Callable[[float], Awaitable[None]]
Uniform = Callable[[float, float], float]


def activate(
    scope: PluginScope,
    settings: RetrySettings,
    *,
    sleep: Sleep = anyio.sleep,
    uniform: Uniform = random.uniform,
) -> None:
    """Stand around every failed request from now on; the wait ends with the turn's cancel."""

    async def recover(failed: FailedRequest, next: Next[FailedRequest, Awaitable[Recovery]]) -> Recovery:
        error, session = failed.error, scope.sessions.get(failed.agent_id)
        if await next(failed) == "retry":
            return "retry"
        if error.kind not in PASSING or session is None:
            return "fail"
        if failed.attempt >= settings.attempts:
            raise _given_up(error, failed.attempt)

        if error.retry_after_s is None:
            wait_s = uniform(0.0, longest_wait_s(settings, failed.attempt))
        elif error.retry_after_s <= settings.cap_s:
            wait_s = error.retry_after_s
        else:
            raise _too_long(error, error.retry_after_s)

        session.log.append(
            RequestRetried(
                failed.turn,
                failed.step,
                failed.attempt,
                error.kind,
                str(error),
                round(wait_s * 1000),
                failed.shown,
            )
        )
        await sleep(wait_s)
        return "retry"

    scope.around(REQUEST_ERROR, recover)


def longest_wait_s(settings: RetrySettings, attempt: int) -> float:
    """Most seconds to wait after attempt number `attempt` failed, when the provider asks for none."""
    return min(settings.cap_s, settings.base_s * 2.0 ** (attempt - 1))


def _given_up(error: ProviderError, attempts: int) -> ProviderError:
    if attempts == 1:
        return error
    return _reworded(error, f"{str(error).rstrip('.')}. It was tried {attempts} times.")


def _too_long(error: ProviderError, wait_s: float) -> ProviderError:
    return _reworded(error, f"{str(error).rstrip('.')}. It asks to wait {_long(wait_s)} before the next try.")


def _long(wait_s: float) -> str:
    """A wait in the largest unit that there are at least two of."""
    for unit, unit_s in (("hours", 3600), ("minutes", 60)):
        if wait_s >= 2 * unit_s:
            return f"{round(wait_s / unit_s)} {unit}"
    return f"{round(wait_s)} seconds"


def _reworded(error: ProviderError, message: str) -> ProviderError:
    again = ProviderError(
        error.kind,
        message,
        provider=error.provider,
        status=error.status,
        retry_after_s=error.retry_after_s,
    )
    again.shown = error.shown
    return again
