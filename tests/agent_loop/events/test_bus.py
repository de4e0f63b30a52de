"""The bus: order, starvation, re-entrance, disposal, and who hears of an exception."""

import asyncio
from collections.abc import Awaitable, Callable

import anyio
import pytest

from agent_loop.events.bus import Bus, Next, Waterfall
from agent_loop.events.contain import StrayCancel
from agent_loop.events.moments import AgentCreated, AgentDisposed, Checkpoint

CREATED = AgentCreated("a")
FLUSH = Checkpoint("s", durable=True)
PLACE = Waterfall[int, int]("test/place")
ASYNC_PLACE = Waterfall[int, Awaitable[int]]("test/async-place")


def raising(error: BaseException) -> Callable[[object], object]:
    def listener(_: object) -> object:
        raise error

    return listener


def double(value: int) -> int:
    return value * 2


def test_listeners_are_called_in_the_order_they_came() -> None:
    """Loop specification 1.1: registration order; `prepend` goes first."""
    bus, heard = Bus(), list[str]()
    bus.on(AgentCreated, lambda _: heard.append("first"))
    bus.on(AgentCreated, lambda _: heard.append("second"))
    bus.on(AgentCreated, lambda _: heard.append("zeroth"), prepend=True)

    bus.emit(CREATED)

    assert heard == ["zeroth", "first", "second"]


def test_a_listener_hears_exactly_its_own_class() -> None:
    """Our promise: a moment of another class is none of its business."""
    bus, heard = Bus(), list[object]()
    bus.on(AgentCreated, heard.append)

    bus.emit(AgentDisposed("a"))
    bus.emit(CREATED)

    assert heard == [CREATED]
    assert (bus.listens(AgentCreated), bus.listens(AgentDisposed)) == (True, False)


def test_a_raising_listener_starves_nobody_and_the_first_exception_reaches_the_emitter() -> None:
    """Our promise: every listener runs, whatever the one before did."""
    bus, heard = Bus(), list[object]()
    bus.on(AgentCreated, raising(RuntimeError("first")))
    bus.on(AgentCreated, raising(RuntimeError("second")))
    bus.on(AgentCreated, heard.append)

    with pytest.raises(RuntimeError, match="first"):
        bus.emit(CREATED)

    assert heard == [CREATED]


def test_a_stray_cancellation_out_of_a_listener_is_an_error_like_any_other() -> None:
    """Our promise: `except Exception` around an emit contains everything a listener can do."""
    bus, heard = Bus(), list[object]()
    stray = asyncio.CancelledError()
    bus.on(AgentCreated, raising(stray))
    bus.on(AgentCreated, raising(RuntimeError("later")))
    bus.on(AgentCreated, heard.append)

    with pytest.raises(StrayCancel) as caught:
        bus.emit(CREATED)

    assert (caught.value.__cause__, heard) == (stray, [CREATED])


def test_registering_and_disposing_inside_an_emit_count_from_the_next() -> None:
    """Contract 7: the registry is copy-on-write."""
    bus, heard = Bus(), list[str]()

    def first(_: object) -> None:
        heard.append("first")
        dispose_last()
        bus.on(AgentCreated, lambda _: heard.append("new"))

    bus.on(AgentCreated, first)
    dispose_last = bus.on(AgentCreated, lambda _: heard.append("last"))

    bus.emit(CREATED)
    assert heard == ["first", "last"]

    heard.clear()
    bus.emit(CREATED)
    assert heard == ["first", "new"]


def test_a_disposer_undoes_its_own_registration_and_no_other() -> None:
    """Loop specification 9.19: a stale disposer must not take what came after."""
    bus, heard = Bus(), list[object]()
    first = bus.on(AgentCreated, heard.append)
    second = bus.on(AgentCreated, heard.append)

    first()
    first()
    bus.emit(CREATED)
    assert heard == [CREATED]

    second()
    second()
    bus.emit(CREATED)
    assert (heard, bus.listens(AgentCreated)) == ([CREATED], False)


async def test_parallel_listeners_overlap() -> None:
    """Loop specification 1.1: all are started before any is waited for."""
    bus, here = Bus(), [anyio.Event(), anyio.Event()]

    def meets(mine: int) -> Callable[[object], Awaitable[None]]:
        async def listener(_: object) -> None:
            here[mine].set()
            await here[1 - mine].wait()

        return listener

    bus.on(Checkpoint, meets(0))
    bus.on(Checkpoint, meets(1))

    with anyio.fail_after(1):
        await bus.parallel(FLUSH)


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("error", [RuntimeError("disk"), asyncio.CancelledError()])
async def test_a_failing_parallel_listener_is_reported_after_all_have_ended(
    error: BaseException, others: int
) -> None:
    """Loop specification 9.28: start all, wait for all, then report."""
    bus, ended = Bus(), list[str]()

    async def fails(_: object) -> None:
        raise error

    async def slow(_: object) -> None:
        await anyio.lowlevel.checkpoint()
        await anyio.lowlevel.checkpoint()
        ended.append("slow")

    bus.on(Checkpoint, fails)
    for _ in range(others):
        bus.on(Checkpoint, slow)

    with pytest.raises((RuntimeError, StrayCancel)) as caught:
        await bus.parallel(FLUSH)

    assert error in (caught.value, caught.value.__cause__)
    assert ended == ["slow"] * others


async def test_a_listener_that_raises_before_it_awaits_starves_no_other() -> None:
    """Loop specification 9.28: a synchronous raise inside a parallel dispatch."""
    bus, heard = Bus(), list[object]()

    async def hears(moment: object) -> None:
        heard.append(moment)

    bus.on(Checkpoint, raising(RuntimeError("at once")))
    bus.on(Checkpoint, hears)

    with pytest.raises(RuntimeError, match="at once"):
        await bus.parallel(FLUSH)

    assert heard == [FLUSH]


@pytest.mark.parametrize("listeners", [1, 2])
async def test_a_real_cancellation_passes_through_parallel_listeners(listeners: int) -> None:
    """Our promise: cancelling is normal; only a stray one is an error."""
    bus, reached = Bus(), list[str]()

    async def forever(_: object) -> None:
        reached.append("listener")
        await anyio.sleep_forever()

    for _ in range(listeners):
        bus.on(Checkpoint, forever)

    with anyio.move_on_after(0.01) as scope:
        await bus.parallel(FLUSH)
        reached.append("past the listeners")

    assert (scope.cancelled_caught, reached) == (True, ["listener"] * listeners)


async def test_an_event_without_listeners_costs_nothing() -> None:
    """Contract 7: not even a turn of the event loop."""
    bus, ran = Bus(), list[str]()
    asyncio.get_running_loop().call_soon(ran.append, "another callback")

    bus.emit(CREATED)
    await bus.parallel(FLUSH)

    assert ran == []


def test_a_waterfall_runs_around_its_core_and_the_first_registered_is_outermost() -> None:
    """Loop specification 1.1: around-middleware; what the outermost returns counts."""
    bus, order = Bus(), list[str]()

    def named(name: str) -> Callable[[int, Next[int, int]], int]:
        def middleware(value: int, next: Next[int, int]) -> int:
            order.append(name)
            return next(value + 1) + 100

        return middleware

    bus.around(PLACE, named("outer"))
    dispose = bus.around(PLACE, named("inner"))
    bus.around(PLACE, named("outermost"), prepend=True)

    assert bus.run(PLACE, 1, double) == 308
    assert order == ["outermost", "outer", "inner"]

    dispose()
    assert bus.run(PLACE, 1, double) == 206


def test_a_middleware_may_answer_alone_or_ask_twice() -> None:
    """Loop specification 1.1: returning without `next` short-circuits; retrying is calling it again."""
    bus = Bus()

    assert bus.run(PLACE, 3, double) == 6
    dispose = bus.around(PLACE, lambda value, next: next(value) + next(value))
    assert bus.run(PLACE, 3, double) == 12

    dispose()
    bus.around(PLACE, lambda value, next: -1)
    assert bus.run(PLACE, 3, double) == -1


async def test_an_asynchronous_waterfall_works_on_the_registrations_it_began_with() -> None:
    """Contract 7: registering inside one takes effect from the next."""
    bus = Bus()

    async def core(value: int) -> int:
        return value

    async def adds(value: int, next: Next[int, Awaitable[int]]) -> int:
        bus.around(ASYNC_PLACE, adds)
        return await next(value + 1)

    bus.around(ASYNC_PLACE, adds)

    assert await bus.run(ASYNC_PLACE, 0, core) == 1
    assert await bus.run(ASYNC_PLACE, 0, core) == 2
