"""Counts that guard the hot path: they are the same on any machine, however busy.

A count that grew is a decision to take, not a number to raise: what did a delta get for it?
"""

import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import anyio
import pytest
from anyio import to_thread

from acp_server.bridge.connection import Connection
from acp_server.methods.table import methods
from acp_server.rpc.dispatch import Dispatcher
from acp_server.rpc.peer import Peer
from acp_server.transport.outbox import Outbox
from agent_loop import load_settings, open_harness
from agent_loop.persistence import files
from tests.doubles.memory_editor import INITIALIZE, connected
from tests.doubles.memory_model import STOP, Item, MemoryModel, calls, says

CALLS_PER_DELTA_AT_MOST = 28
DELTAS_PER_PACE = 64
FIXED_WRITES_AT_MOST = 12

Ask = Callable[[str], Awaitable[None]]


def deltas(number: int) -> list[Item]:
    return [*({"text": f"word {n} "} for n in range(number)), STOP]


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """Counts the calls this thread makes, of Python functions and of built-in ones."""
    count = [0]

    def profile(_: FrameType, event: str, __: Any) -> None:
        if event in ("call", "c_call"):
            count[0] += 1

    sys.setprofile(profile)
    try:
        yield count
    finally:
        sys.setprofile(None)


@contextmanager
def read_by_a_thread() -> Iterator[int]:
    """The writing end of a pipe that is read as fast as it can be."""
    reading, writing = os.pipe()

    def read() -> None:
        while os.read(reading, 1 << 20):
            pass

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    yield writing
    os.close(writing)
    reader.join(5)
    os.close(reading)


async def _calls_and_writes(folder: Path, number: int) -> tuple[int, int]:
    """How many calls and writes a turn of so many deltas takes, from the model to the pipe."""
    model = MemoryModel(says("warm"), deltas(number))
    loaded = load_settings(flags={"model": "scripted/test"}, environ={}, state_dir=folder / "state")
    with read_by_a_thread() as writing:
        async with open_harness(loaded, {}) as harness, anyio.create_task_group() as handlers:
            harness.llm.register(model)
            outbox = Outbox(writing, on_broken=lambda: None)
            answered: dict[int, anyio.Event] = {}
            peer = _Answers(outbox, answered)
            connection = Connection(harness, peer, outbox, handlers)
            peer.dispatch = Dispatcher(methods(), connection)
            await peer.ask(1, "initialize", INITIALIZE)
            await peer.ask(2, "session/new", {"cwd": str(folder)})
            [agent] = harness.agents.list()
            prompt = {"sessionId": agent.id, "prompt": [{"type": "text", "text": "Hello."}]}
            await peer.ask(3, "session/prompt", prompt)
            await agent.when_idle()

            writes = outbox.writes
            with counted_calls() as count:
                await peer.ask(4, "session/prompt", prompt)
            await outbox.drain(5)
            writes = outbox.writes - writes

            await connection.close()
            handlers.cancel_scope.cancel()
            outbox.close()
    return count[0], writes


class _Answers(Peer):
    """A peer whose answers can be waited for."""

    def __init__(self, outbox: Outbox, answered: dict[int, anyio.Event]) -> None:
        super().__init__(outbox)
        self._answered = answered

    async def ask(self, number: int, method: str, params: dict[str, Any]) -> None:
        self._answered[number] = anyio.Event()
        self._on_message({"id": number, "method": method, "params": params})
        with anyio.fail_after(10):
            await self._answered[number].wait()

    def send(self, message: dict[str, Any]) -> None:
        super().send(message)
        if "method" not in message:
            self._answered[message["id"]].set()


async def test_a_delta_costs_a_fixed_and_small_number_of_calls(tmp_path: Path) -> None:
    """Our promise: from the provider through the log and the projector to the outbox."""
    few, _ = await _calls_and_writes(tmp_path, 1_000)
    many, _ = await _calls_and_writes(tmp_path, 3_000)

    per_delta = (many - few) / 2_000

    assert 5 < per_delta <= CALLS_PER_DELTA_AT_MOST, per_delta


async def test_all_deltas_of_a_tick_are_one_write(tmp_path: Path) -> None:
    """Our promise: writes are joined; a client wakes once for what is there."""
    _, writes = await _calls_and_writes(tmp_path, 20 * DELTAS_PER_PACE)

    assert writes <= 20 + FIXED_WRITES_AT_MOST


async def test_a_new_session_goes_to_a_worker_thread_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: beside a stream, each way to a thread and back waits for two ticks of it."""
    hops: list[str] = []
    run_sync = to_thread.run_sync

    async def counted(work: Callable[..., Any], *values: Any, **options: Any) -> Any:
        hops.append(getattr(work, "func", work).__name__)
        return await run_sync(work, *values, **options)

    async with connected(tmp_path, MemoryModel()) as editor:
        monkeypatch.setattr(editor.harness, "warm_up", lambda: None)
        monkeypatch.setattr(to_thread, "run_sync", counted)

        await editor.new_session()

    assert hops == ["_create"]


@pytest.mark.parametrize(
    ("answers", "syncs"),
    [
        ([says("a", "b")], 1),
        ([calls(("c1", "list", {})), says("x")], 1),
        ([calls(("c1", "write", {"path": "a", "content": "x"})), says("x")], 2),
    ],
    ids=["text", "a reading tool", "a writing tool"],
)
async def test_a_turn_goes_to_the_disk_once_and_once_more_before_each_effect(
    answers: list[list[Item]], syncs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contracts 7: durable at the turn's end and before an effect; nothing else waits for the disk."""
    seen: list[str] = []
    monkeypatch.setattr(files, "sync_data", lambda _: seen.append("data"))
    monkeypatch.setattr(os, "fsync", lambda _: seen.append("folder"))
    model = MemoryModel(says("first"), *answers)
    async with connected(tmp_path, model, flags={"permission_mode": "full-auto"}) as editor:
        session = await editor.new_session()
        await editor.result(editor.prompt(session))
        assert seen.count("folder") <= 3
        seen.clear()

        await editor.result(editor.prompt(session))

        assert seen == ["data"] * syncs
