"""Our requests to the editor: matched answers, late ones ignored, and nobody waits for one that is gone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from acp_server.errors import RpcError
from acp_server.rpc.calls import Calls, ConnectionClosed


class Wire:
    """What was sent, and calls over it."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.calls = Calls(self)
        self.outcomes: list[Any] = []

    def send(self, message: dict[str, Any]) -> None:
        self.sent.append(message)

    async def request(self, method: str = "ask") -> None:
        try:
            self.outcomes.append(await self.calls.request(method, {"a": 1}))
        except (RpcError, ConnectionClosed) as error:
            self.outcomes.append(error)


@asynccontextmanager
async def asking(wire: Wire, times: int = 1) -> AsyncIterator[anyio.abc.TaskGroup]:
    """Requests in flight."""
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(times):
                tasks.start_soon(wire.request)
            await anyio.lowlevel.checkpoint()
            yield tasks


async def test_each_request_has_an_id_of_its_own_and_gets_its_own_answer() -> None:
    """JSON-RPC 2.0: answers may come in any order."""
    wire = Wire()

    async with asking(wire, times=2):
        wire.calls.resolve({"id": 2, "result": "two"})
        await anyio.lowlevel.checkpoint()
        wire.calls.resolve({"id": 1, "result": "one"})

    assert wire.sent == [{"jsonrpc": "2.0", "id": n, "method": "ask", "params": {"a": 1}} for n in (1, 2)]
    assert wire.outcomes == ["two", "one"]


async def test_an_error_answer_is_raised_with_its_code() -> None:
    """ACP, tool calls: an error must end in "not approved", so whoever asks has to know."""
    wire = Wire()

    async with asking(wire):
        wire.calls.resolve({"id": 1, "error": {"code": -32800, "message": "gone"}})

    assert [(error.code, error.message) for error in wire.outcomes] == [(-32800, "gone")]


@pytest.mark.parametrize("error", ["no", {}, {"code": "x", "message": 5}, 0])
async def test_a_malformed_error_is_an_error_all_the_same(error: object) -> None:
    """Our promise: read leniently, never as a yes."""
    wire = Wire()

    async with asking(wire):
        wire.calls.resolve({"id": 1, "error": error})

    assert [type(outcome) for outcome in wire.outcomes] == [RpcError]


async def test_an_answer_without_result_and_with_a_null_error_is_an_empty_result() -> None:
    """Some clients write both members; null says there is none."""
    wire = Wire()

    async with asking(wire):
        wire.calls.resolve({"id": 1, "error": None})

    assert wire.outcomes == [None]


async def test_answers_to_nothing_are_ignored() -> None:
    """Scenario B47: a late answer to an old request is ignored quietly."""
    wire = Wire()

    async with asking(wire):
        strange: list[object] = ["1", 1.0, None, True, 2, [], {}]
        for message_id in strange:
            wire.calls.resolve({"id": message_id, "result": "wrong"})
        wire.calls.resolve({"result": "no id"})
        await anyio.lowlevel.checkpoint()
        assert wire.outcomes == []
        wire.calls.resolve({"id": 1, "result": "right"})
        wire.calls.resolve({"id": 1, "result": "again"})

    assert wire.outcomes == ["right"]


async def test_a_request_nobody_waits_for_any_more_is_cancelled_at_the_editors() -> None:
    """ACP, cancellation: an agent may cascade `$/cancel_request` to its own requests."""
    wire = Wire()

    async with asking(wire) as tasks:
        tasks.cancel_scope.cancel()
    wire.calls.resolve({"id": 1, "result": "late"})

    assert wire.sent[1:] == [{"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}]
    assert wire.outcomes == []


async def test_a_request_answered_in_the_tick_of_its_cancellation_is_not_cancelled_at_the_editors() -> None:
    """ACP, cancellation: unknown ids are noise; we send none that we know to be finished."""
    wire = Wire()

    async with asking(wire) as tasks:
        wire.calls.resolve({"id": 1, "result": "just in time"})
        tasks.cancel_scope.cancel()

    assert len(wire.sent) == 1


async def test_closing_fails_what_is_open_and_what_comes_later() -> None:
    """Scenario B11: end of input with a permission open must not hang."""
    wire = Wire()

    async with asking(wire) as tasks:
        wire.calls.close()
        await anyio.lowlevel.checkpoint()
        tasks.start_soon(wire.request)

    assert [type(outcome) for outcome in wire.outcomes] == [ConnectionClosed, ConnectionClosed]
    assert len(wire.sent) == 1


async def test_a_wait_cancelled_after_closing_tells_nobody() -> None:
    """Our promise: nothing is written to an editor that is gone."""
    wire = Wire()

    async with asking(wire) as tasks:
        wire.calls._closed = True
        tasks.cancel_scope.cancel()

    assert len(wire.sent) == 1
