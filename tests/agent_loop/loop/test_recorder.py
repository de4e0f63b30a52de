"""The recorder: behind the loop's back, by cursor, and nothing forgotten until the store has it."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.chunks import TextDelta
from agent_loop.events.bus import Bus
from agent_loop.events.facts import AssistantChunk, PluginFact
from agent_loop.events.facts_json import fact_to_json
from agent_loop.events.moments import Checkpoint
from agent_loop.persistence import recorder as room
from agent_loop.persistence.recorder import Recorder
from agent_loop.session.header import SessionHeader
from agent_loop.session.sessions import Session
from tests.doubles.loop_rig import PATIENCE_S
from tests.doubles.memory_store import MemoryStore, Write, full_disk


class Desk:
    """One session, its recorder, and the store behind it."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.store = MemoryStore()
        self.session = Session(SessionHeader("s", 1))
        self.recorder = Recorder(self.store, self.session, self.bus, stored=0)

    def log(self, *kinds: str) -> None:
        for kind in kinds:
            self.session.log.append(PluginFact("p", kind, None))

    def kept(self) -> list[object]:
        return [fact_to_json(fact) for fact in self.store.facts("s")]


@asynccontextmanager
async def open_desk() -> AsyncIterator[Desk]:
    """A desk whose recorder runs; at the end it is closed, and must leave by itself."""
    desk = Desk()
    await desk.store.create(desk.session.header)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            group.start_soon(desk.recorder.run)
            yield desk
            await desk.recorder.close()


@pytest.fixture(autouse=True)
def _late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The write-behind comes so late that what is seen before it is somebody else's work."""
    monkeypatch.setattr(room, "WRITE_BEHIND_S", 60.0)


async def test_what_is_logged_is_written_behind_without_being_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loop specification 6.37: bounded write-behind, not one write per fact, and no sync."""
    monkeypatch.setattr(room, "WRITE_BEHIND_S", 0.01)
    async with open_desk() as desk:
        desk.log("a", "b")
        await desk.store.grows_to("s", 2)
        desk.log("c")
        await desk.store.grows_to("s", 3)

        assert desk.store.writes == [Write("s", 0, 2, False), Write("s", 2, 1, False)]


async def test_a_checkpoint_brings_everything_and_asks_for_what_it_needs() -> None:
    """Contract 7: awaited, and durable when the moment says so."""
    async with open_desk() as desk:
        desk.log("a")
        await desk.bus.parallel(Checkpoint("s", durable=False))
        desk.log("b", "c")
        await desk.bus.parallel(Checkpoint("s", durable=True))

        assert desk.store.writes == [Write("s", 0, 1, False), Write("s", 1, 2, True)]


async def test_another_sessions_checkpoint_is_none_of_its_business() -> None:
    """Our promise: one store, many recorders."""
    async with open_desk() as desk:
        desk.log("a")
        await desk.bus.parallel(Checkpoint("other", durable=True))

        assert desk.store.writes == []


async def test_a_checkpoint_with_nothing_new_costs_the_store_nothing() -> None:
    """Our promise: before most requests everything is written already."""
    async with open_desk() as desk:
        await desk.bus.parallel(Checkpoint("s", durable=False))
        desk.log("a")
        await desk.bus.parallel(Checkpoint("s", durable=True))
        await desk.bus.parallel(Checkpoint("s", durable=True))
        await desk.bus.parallel(Checkpoint("s", durable=False))

        assert desk.store.writes == [Write("s", 0, 1, True)]


async def test_a_durable_checkpoint_syncs_what_was_only_written() -> None:
    """Contract 7: `durable` asks for the disk itself, whoever wrote the facts before."""
    async with open_desk() as desk:
        desk.log("a")
        await desk.bus.parallel(Checkpoint("s", durable=False))
        await desk.bus.parallel(Checkpoint("s", durable=True))

        assert desk.store.writes == [Write("s", 0, 1, False), Write("s", 1, 0, True)]


async def test_a_failing_store_loses_nothing() -> None:
    """Loop specification 1.9: removed only after the append committed; the next flush brings all."""
    async with open_desk() as desk:
        desk.store.failing = full_disk()
        desk.log("a")
        with pytest.raises(type(full_disk()), match="full"):
            await desk.bus.parallel(Checkpoint("s", durable=True))
        desk.log("b")
        desk.store.failing = None
        await desk.bus.parallel(Checkpoint("s", durable=True))

        assert desk.kept() == [fact_to_json(fact) for fact in desk.session.log]


async def test_a_failing_write_behind_is_a_line_in_the_log_and_tried_again_with_the_next_fact(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Loop specification 6.37: a failure keeps the batch and pauses; the disk is not asked over and over."""
    monkeypatch.setattr(room, "WRITE_BEHIND_S", 0.0)
    failed = anyio.Event()
    async with open_desk() as desk:

        async def fails() -> None:
            failed.set()

        desk.store.at_append, desk.store.failing = fails, full_disk()
        with caplog.at_level(logging.WARNING):
            desk.log("a")
            await failed.wait()
            for _ in range(5):
                await checkpoint()
        assert (len(desk.store.writes), "kept in memory" in caplog.text) == (1, True)

        desk.store.failing = None
        desk.log("b")
        await desk.store.grows_to("s", 2)


async def test_a_growing_run_is_written_in_pieces_that_make_the_whole() -> None:
    """Contract 1: a cursor may stop inside a run."""
    async with open_desk() as desk:
        for text in ("a", "b", "c"):
            desk.session.log.append(AssistantChunk(1, 1, 1, TextDelta(0, text)))
            await desk.bus.parallel(Checkpoint("s", durable=False))

        assert [write.count for write in desk.store.writes] == [1, 1, 1]
        assert desk.kept() == [fact_to_json(fact) for fact in desk.session.log]


async def test_two_flushes_at_once_write_each_fact_once() -> None:
    """Loop specification 1.9: one at a time."""
    async with open_desk() as desk:
        desk.log("a")
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(desk.bus.parallel, Checkpoint("s", durable=True))

        assert desk.store.writes == [Write("s", 0, 1, True)]


async def test_closing_flushes_for_the_last_time_and_stops_listening() -> None:
    """Loop specification 1.9: dispose flushes; afterwards the session is nobody's."""
    async with open_desk() as desk:
        desk.log("a")
        await desk.recorder.close()
        assert desk.store.writes == [Write("s", 0, 1, True)]

        desk.log("b")
        await desk.bus.parallel(Checkpoint("s", durable=True))
        assert len(desk.store.writes) == 1


async def test_closing_on_a_broken_disk_says_so_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    """Our promise: shutdown is not held up, and what was lost is named."""
    desk = Desk()
    await desk.store.create(desk.session.header)
    desk.store.failing = full_disk()
    desk.log("a")

    with caplog.at_level(logging.ERROR):
        await desk.recorder.close()

    assert "session s: its last facts could not be saved: the disk is full" in caplog.text


async def test_closing_on_a_stuck_disk_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Contract 6: clean up under a shield with a deadline."""
    monkeypatch.setattr(room, "CLOSE_GRACE_S", 0.01)
    desk = Desk()
    await desk.store.create(desk.session.header)
    desk.store.at_append = anyio.sleep_forever
    desk.log("a")

    with caplog.at_level(logging.ERROR):
        await desk.recorder.close()

    assert "session s: its last facts were not saved" in caplog.text


async def test_closing_is_not_interrupted() -> None:
    """Contract 6: the last flush runs under a shield."""
    desk = Desk()
    await desk.store.create(desk.session.header)
    desk.log("a")

    with anyio.CancelScope() as scope:
        scope.cancel()
        await desk.recorder.close()

    assert desk.store.count("s") == 1
