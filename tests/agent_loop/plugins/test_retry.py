"""Retries: which failures are tried again, how long the wait is, and what is told and kept of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, get_args

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.config.settings import RetrySettings
from agent_loop.errors import ErrorKind, ProviderError
from agent_loop.events.facts import AssistantMessage, RequestRetried, TurnEnd
from agent_loop.events.waterfalls import REQUEST_ERROR, FailedRequest
from agent_loop.messages import Text
from agent_loop.plugins import retry
from agent_loop.plugins.scope import PluginScope
from agent_loop.session.repair import closers
from tests.doubles.loop_rig import Rig, ask, history, of_type, open_rig
from tests.doubles.memory_store import MemoryStore
from tests.doubles.model import Entry, calls, said, text

LASTING: Final = frozenset(get_args(ErrorKind)) - retry.PASSING


class Waits:
    """In place of clock and chance: each wait is the longest there could be, and over at once."""

    def __init__(self) -> None:
        self.lengths_s: list[float] = []

    async def sleep(self, length_s: float) -> None:
        self.lengths_s.append(length_s)
        await anyio.lowlevel.checkpoint()

    @staticmethod
    def longest(low: float, high: float) -> float:
        assert low == 0.0
        return high


@asynccontextmanager
async def retrying(*entries: Entry, **settings: Any) -> AsyncIterator[tuple[Rig, Waits]]:
    waits = Waits()
    async with open_rig(*entries) as rig:
        scope = PluginScope(
            bus=rig.bus, agents=rig.agents, sessions=rig.sessions, tools=rig.tools, prompt=rig.prompt
        )
        retry.activate(
            scope,
            RetrySettings(**settings),
            sleep=waits.sleep,
            uniform=waits.longest,
        )
        yield rig, waits


def failing(kind: ErrorKind, retry_after_s: float | None = None) -> ProviderError:
    return ProviderError(
        kind, f"openai says {kind}.", provider="openai", status=429, retry_after_s=retry_after_s
    )


@pytest.mark.parametrize("kind", sorted(retry.PASSING))
async def test_what_may_pass_is_tried_again_in_the_same_step(kind: ErrorKind) -> None:
    """Loop specification 6.4: retries belong to the step; the turn goes on as if nothing had been."""
    async with retrying(failing(kind), text("well")) as (rig, waits):
        agent = await rig.agent()
        await ask(agent, "go")

        [told] = of_type(agent, RequestRetried)
        assert (told.turn, told.step, told.attempt, told.kind, told.shown) == (1, 1, 1, kind, False)
        assert (told.message, told.delay_ms, waits.lengths_s) == (f"openai says {kind}.", 1000, [1.0])
        assert [it.attempt for it in of_type(agent, AssistantMessage)] == [2]
        assert [it.reason.kind for it in of_type(agent, TurnEnd)] == ["completed"]
        assert rig.model.requests[0] == rig.model.requests[1]


@pytest.mark.parametrize("kind", sorted(LASTING))
async def test_what_stays_the_same_is_not_tried_again(kind: ErrorKind) -> None:
    """Issue, retry policy: a refused key or a conversation too long is refused the next time as well."""
    async with retrying(failing(kind), text("never")) as (rig, waits):
        agent = await rig.agent()
        await ask(agent, "go")

        [end] = of_type(agent, TurnEnd)
        assert (end.reason.error_kind, end.reason.message) == (kind, f"openai says {kind}.")
        assert (waits.lengths_s, of_type(agent, RequestRetried), len(rig.model.requests)) == ([], [], 1)


async def test_waits_double_up_to_their_limit_and_the_last_failure_says_how_often() -> None:
    """Issue, retry policy: exponential, bounded in length and in number."""
    async with retrying(*[failing("server")] * 5, attempts=5, base_s=1.0, cap_s=3.0) as (rig, waits):
        agent = await rig.agent()
        await ask(agent, "go")

        assert waits.lengths_s == [1.0, 2.0, 3.0, 3.0]
        [end] = of_type(agent, TurnEnd)
        assert end.reason.message == "openai says server. It was tried 5 times."
        assert end.reason.error_kind == "server"
        assert dict(end.reason.data or {}) == {"provider": "openai", "status": 429}


async def test_one_attempt_means_no_retry() -> None:
    """Settings: a person may want to hear of the first failure at once, in its own words."""
    async with retrying(failing("server"), attempts=1) as (rig, waits):
        agent = await rig.agent()
        await ask(agent, "go")

        assert (waits.lengths_s, of_type(agent, TurnEnd)[0].reason.message) == ([], "openai says server.")


async def test_a_provider_that_says_when_is_taken_at_its_word() -> None:
    """Issue, retry policy: `Retry-After` is honoured."""
    async with retrying(failing("rate_limit", 7.5), text("well")) as (rig, waits):
        agent = await rig.agent()
        await ask(agent, "go")

        assert waits.lengths_s == [7.5]
        assert of_type(agent, RequestRetried)[0].delay_ms == 7500


@pytest.mark.parametrize(
    ("asked_s", "words"), [(90.0, "90 seconds"), (3_600.0, "60 minutes"), (18_000.0, "5 hours")]
)
async def test_a_wait_nobody_would_sit_through_fails_at_once_and_says_how_long(
    asked_s: float, words: str
) -> None:
    """Issue, retry policy: under a cap; the person reads when it is worth coming back."""
    async with retrying(failing("rate_limit", asked_s), text("never")) as (rig, waits):
        agent = await rig.agent()
        await ask(agent, "go")

        [end] = of_type(agent, TurnEnd)
        assert waits.lengths_s == []
        assert end.reason.message == f"openai says rate_limit. It asks to wait {words} before the next try."
        assert (end.reason.data or {})["retryAfter"] == asked_s


async def test_what_was_shown_of_a_failed_answer_is_not_what_the_model_said() -> None:
    """Contracts 1, attempts: the person saw it, the log has it, the history does not."""
    cut = [*said("half an ans")[:-1], failing("transport")]
    async with retrying(cut, text("whole"), text("next")) as (rig, _):
        agent = await rig.agent()
        await ask(agent, "go")
        await ask(agent, "on")

        assert of_type(agent, RequestRetried)[0].shown
        assert [said for who, said in history(agent) if who == "assistant"] == ["whole", "next"]
        assert "half" not in str(rig.model.requests[-1].messages)


async def test_a_tool_call_of_a_failed_answer_is_never_run() -> None:
    """Loop specification 6.4: an attempt that failed has no effects."""
    cut = [*calls(("c1", '{"job": "work"}'))[:-2], failing("transport")]
    async with retrying(cut, text("done")) as (rig, _):
        agent = await rig.agent()
        await ask(agent, "go")

        assert [who for who, _ in history(agent)] == ["user", "assistant"]


async def test_a_cancel_ends_the_wait() -> None:
    """Issue, retry policy: cancellable while waiting; the next prompt works."""
    async with open_rig(failing("server"), text("well")) as rig:
        scope = PluginScope(
            bus=rig.bus, agents=rig.agents, sessions=rig.sessions, tools=rig.tools, prompt=rig.prompt
        )
        waiting = anyio.Event()

        async def forever(_: float) -> None:
            waiting.set()
            await anyio.sleep_forever()

        retry.activate(scope, RetrySettings(), sleep=forever)
        agent = await rig.agent()
        agent.send([Text("go")])
        with anyio.fail_after(5):
            await waiting.wait()
            agent.cancel()
            await agent.when_idle()
            await ask(agent, "again")

        assert [it.reason.kind for it in of_type(agent, TurnEnd)] == ["aborted", "completed"]
        assert history(agent)[-1] == ("assistant", "well")


async def test_another_plugins_retry_comes_first() -> None:
    """Contracts 7: a waterfall; whoever stands nearer to the loop may have repaired the cause."""
    async with retrying(failing("context_too_long"), text("well")) as (rig, waits):

        async def repaired(failed: FailedRequest, next: object) -> str:
            return "retry"

        rig.bus.around(REQUEST_ERROR, repaired)  # type: ignore[arg-type]
        agent = await rig.agent()
        await ask(agent, "go")

        assert (waits.lengths_s, history(agent)[-1]) == ([], ("assistant", "well"))


async def test_a_crash_while_waiting_keeps_nothing_of_the_answer_that_failed() -> None:
    """Contracts 1, crash closers: what does not count does not come back as the model's words."""
    store = MemoryStore()
    cut = [*said("half an ans")[:-1], failing("transport")]
    async with open_rig(cut, text("whole"), store=store) as rig:
        scope = PluginScope(
            bus=rig.bus, agents=rig.agents, sessions=rig.sessions, tools=rig.tools, prompt=rig.prompt
        )
        retry.activate(scope, RetrySettings(), sleep=Waits().sleep)
        agent = await rig.agent()
        await ask(agent, "go")
        rows = list(agent.session.log)

    upto = next(at for at, fact in enumerate(rows) if isinstance(fact, RequestRetried))

    assert not any(isinstance(it, AssistantMessage) for it in closers(rows[: upto + 1]))
    assert any(isinstance(it, AssistantMessage) for it in closers(rows[:upto]))


@given(st.integers(1, 100), st.floats(0.001, 1e6), st.floats(0.001, 1e6))
def test_no_wait_is_longer_than_the_cap(attempts: int, base_s: float, cap_s: float) -> None:
    """Settings: `cap_s` is the longest wait of all, whatever the others are."""
    settings = RetrySettings(attempts=attempts, base_s=base_s, cap_s=cap_s)

    assert 0 <= retry.longest_wait_s(settings, attempts) <= cap_s
