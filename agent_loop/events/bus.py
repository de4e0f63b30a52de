"""The bus: who is told of a moment, and who stands around a waterfall.

Rules.
1. A dispatch works on the registrations it began with: registering inside one is legal, and takes
   effect from the next.
2. Every listener runs, whatever the one before did; then the first exception reaches the emitter.
3. A disposer is idempotent and undoes exactly its own registration.
4. A synchronous listener is never the target of a real cancellation, so a CancelledError out of one
   (it asked a cancelled future for its result) is an error like any other, and leaves as a StrayCancel.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar, cast

import anyio

from agent_loop.events.contain import StrayCancel, stray_cancel
from agent_loop.events.moments import Moment

M = TypeVar("M", bound=Moment)
V = TypeVar("V")
R = TypeVar("R")
Disposer = Callable[[], None]
Next = Callable[[V], R]
Middleware = Callable[[V, Next[V, R]], R]


class Waterfall(Generic[V, R]):
    """The name of a place others may stand around: a value goes in, the core's answer comes out.

    A middleware gets the value and `next`; it may call `next` with the same or another value, call it
    again, or answer without it. Values are replaced, never mutated. R is awaitable for asynchronous places.
    """

    def __init__(self, name: str) -> None:
        self.name = name


class Bus:
    """One harness's event bus."""

    def __init__(self) -> None:
        self._listeners: dict[type[Moment], tuple[_Registration, ...]] = {}
        self._around: dict[Waterfall[Any, Any], tuple[_Registration, ...]] = {}

    def on(self, event: type[M], listener: Callable[[M], object], *, prepend: bool = False) -> Disposer:
        """Call `listener` at each `emit` (or await it at each `parallel`) of exactly this class."""
        return _register(self._listeners, cast("type[Moment]", event), listener, prepend=prepend)

    def around(
        self, place: Waterfall[V, R], middleware: Middleware[V, R], *, prepend: bool = False
    ) -> Disposer:
        """Stand around a waterfall; the first registered is the outermost, `prepend` goes before it."""
        return _register(self._around, place, middleware, prepend=prepend)

    def listens(self, event: type[Moment]) -> bool:
        """Whether anybody would hear this class; lets a hot path not even build the moment."""
        return event in self._listeners

    def emit(self, moment: Moment) -> None:
        """Tell every listener, in order, synchronously.

        Raises:
            Exception: The first one a listener raised, after all have run.
        """
        first: Exception | None = None
        for registration in self._listeners.get(type(moment), ()):
            try:
                registration.call(moment)
            except Exception as error:
                first = first or error
            except asyncio.CancelledError as error:
                first = first or StrayCancel(error)
        if first is not None:
            raise first

    async def parallel(self, moment: Moment) -> None:
        """Start every (asynchronous) listener, wait for all, then raise the first exception if any."""
        registrations = self._listeners.get(type(moment), ())
        errors: list[Exception] = []

        async def run(listener: Callable[[Any], Awaitable[object]]) -> None:
            try:
                await listener(moment)
            except Exception as error:
                errors.append(error)
            except asyncio.CancelledError as error:
                if not stray_cancel():
                    raise
                errors.append(StrayCancel(error))

        if len(registrations) == 1:
            await run(registrations[0].call)
        elif registrations:
            async with anyio.create_task_group() as group:
                for registration in registrations:
                    group.start_soon(run, registration.call)
        if errors:
            raise errors[0]

    def run(self, place: Waterfall[V, R], value: V, core: Callable[[V], R]) -> R:
        """The answer of `core`, through everyone who stands around `place`.

        The place may be asynchronous: R is then awaitable, and the caller awaits what this returns.
        """
        chain = self._around.get(place, ())
        return _step(chain, 0, core)(value) if chain else core(value)


def _step(chain: "tuple[_Registration, ...]", at: int, core: Callable[[V], R]) -> Callable[[V], R]:
    if at == len(chain):
        return core
    return lambda value: cast("R", chain[at].call(value, _step(chain, at + 1, core)))


class _Registration:
    """One registration; the same function registered twice is two of them."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


def _register(
    table: dict[Any, tuple[_Registration, ...]], key: Any, call: Callable[..., Any], *, prepend: bool
) -> Disposer:
    mine = _Registration(call)
    before = table.get(key, ())
    table[key] = (mine, *before) if prepend else (*before, mine)

    def dispose() -> None:
        left = tuple(item for item in table.get(key, ()) if item is not mine)
        if left:
            table[key] = left
        else:
            table.pop(key, None)

    return dispose
