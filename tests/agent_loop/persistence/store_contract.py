"""What every store promises, as one suite: a backend subclasses `StoreContract` and says how to open it.

Owns the promises of the seam in `agent_loop.persistence.store`. What one backend does on its own disk
(layout, torn rows, formats) belongs to that backend's tests.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any
from uuid import uuid4

import anyio
import orjson
import pytest
from anyio import CancelScope, create_task_group
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_loop.chunks import TextDelta
from agent_loop.errors import Duplicate, NotFound, StoreError
from agent_loop.events.facts import AssistantChunk, AssistantRun, LoggedFact, LogRow, PluginFact
from agent_loop.events.facts_json import fact_to_json
from agent_loop.persistence.store import Store
from agent_loop.session.header import SessionHeader
from tests.doubles.facts import STRATEGIES, TIME_MS, any_fact, one_turn, placed_facts, runs

OpenStore = Callable[[], Store]
FailingWrites = Callable[[int], AbstractContextManager[None]]

# Each example makes a session of its own, so that sharing a fixture's store hides nothing.
unhurried_in_fixtures = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[
        HealthCheck.differing_executors,
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
    ],
)

HOSTILE_IDS = [
    "",
    ".",
    "..",
    "../../etc/passwd",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "a\0b",
    "a\n",
    "a b",
    "ключ",
    "\ud800",
    "x" * 129,
    "y" * 10_240,
]


def bytes_of(rows: Sequence[LogRow]) -> list[bytes]:
    """Each fact's row, runs unfolded, so that whole logs compare byte by byte however they are packed."""
    facts: list[LoggedFact] = []
    for row in rows:
        facts += row.facts_from(0) if isinstance(row, AssistantRun) else [row]
    return [orjson.dumps(fact_to_json(fact)) for fact in facts]


def new_header(cwd: str | None = None) -> SessionHeader:
    return SessionHeader(str(uuid4()), TIME_MS, cwd)


@asynccontextmanager
async def opened(store: Store) -> AsyncIterator[Store]:
    """A store for one block, closed behind it."""
    try:
        yield store
    finally:
        await store.aclose()


class StoreContract:
    """Subclasses give the fixtures below their meaning for one backend."""

    @pytest.fixture
    def open_store(self) -> OpenStore:
        """Opens a store on the same place each time, as a new process would."""
        raise NotImplementedError

    @pytest.fixture
    def failing_writes(self) -> FailingWrites:
        """Makes the storage itself fail every write after so many more bytes, for one block."""
        raise NotImplementedError

    @pytest.fixture
    def everything_stored(self) -> Callable[[], Any]:
        """Whatever the backend holds, comparable, to see that nothing was touched."""
        raise NotImplementedError

    @pytest.mark.parametrize("cwd", [None, "/", "/no/such/directory"])
    async def test_a_new_session_is_known_to_the_next_process(
        self, open_store: OpenStore, cwd: str | None
    ) -> None:
        """Contract 8: the header is stored before `session/new` answers."""
        header = SessionHeader(str(uuid4()), TIME_MS, cwd, parent="origin")

        async with opened(open_store()) as store:
            await store.create(header)

        async with opened(open_store()) as store:
            assert await store.load(header.id) == (header, [])

    @pytest.mark.parametrize("kind", STRATEGIES, ids=lambda kind: kind.TYPE)
    @given(data=st.data())
    @unhurried_in_fixtures
    def test_facts_come_back_byte_for_byte(
        self, open_store: OpenStore, kind: type[LoggedFact], data: st.DataObject
    ) -> None:
        """Spec loop 8.13, contract: byte-identical round trip, for every class of fact."""
        header = new_header()
        # Drawn outside of the event loop: hypothesis stops a draw by an exception asyncio would report.
        facts = placed_facts([data.draw(STRATEGIES[kind]), data.draw(any_fact), one_turn()[-1]])

        async def there_and_back() -> list[LogRow]:
            async with opened(open_store()) as store:
                await store.create(header)
                await store.append(header.id, facts, first_seq=0, durable=False)
            async with opened(open_store()) as store:
                return (await store.load(header.id))[1]

        loaded = anyio.run(there_and_back)

        assert bytes_of(loaded) == bytes_of(facts)

    @given(run=runs)
    @unhurried_in_fixtures
    def test_a_run_comes_back_as_the_deltas_it_stands_for(
        self, open_store: OpenStore, run: AssistantRun
    ) -> None:
        """Contract 1: a run stands for its chunk facts losslessly, and the log goes on behind them."""
        header = new_header()
        run_end = len(run.texts)
        end = placed_facts([one_turn()[-1]], run_end)
        next_turn = one_turn(2, run_end + 1)

        async def there_and_back() -> list[LogRow]:
            async with opened(open_store()) as store:
                await store.create(header)
                await store.append(header.id, [run, *end], first_seq=0, durable=False)
            async with opened(open_store()) as store:
                await store.load(header.id)
                await store.append(header.id, next_turn, first_seq=run_end + 1, durable=False)
                return (await store.load(header.id))[1]

        assert bytes_of(anyio.run(there_and_back)) == bytes_of([run, *end, *next_turn])

    async def test_a_fact_that_overlaps_a_run_is_refused_and_nothing_is_written(
        self, open_store: OpenStore, everything_stored: Callable[[], Any]
    ) -> None:
        """Spec loop 1.9: places inside a batch are contiguous, also behind a row that holds several facts."""
        header = new_header()
        run = AssistantRun(1, 1, 1, 0, TextDelta, 0, TIME_MS)
        run.texts, run.dt_ms = ["a", "b"], [0, 1]
        async with opened(open_store()) as store:
            await store.create(header)
            before = everything_stored()

            with pytest.raises(ValueError, match="seq 1 stands in place 2"):
                await store.append(header.id, [run, *one_turn(1, 1)], first_seq=0, durable=False)

            assert everything_stored() == before

    @pytest.mark.parametrize("durable", [False, True])
    async def test_a_loaded_session_goes_on_where_it_ended(
        self, open_store: OpenStore, durable: bool
    ) -> None:
        """Spec loop 8.13, coordinator: resume does not rewrite."""
        header = new_header()
        first, second, third = one_turn(1), one_turn(2, 7), one_turn(3, 14)

        async with opened(open_store()) as store:
            await store.create(header)
            await store.append(header.id, first, first_seq=0, durable=durable)
            await store.append(header.id, second, first_seq=7, durable=durable)

        async with opened(open_store()) as store:
            await store.load(header.id)
            await store.append(header.id, third, first_seq=14, durable=durable)
            _, loaded = await store.load(header.id)

        assert bytes_of(loaded) == bytes_of([*first, *second, *third])

    async def test_syncing_without_new_facts_is_fine(self, open_store: OpenStore) -> None:
        """Our promise: a flush with nothing new makes earlier facts durable and adds nothing."""
        header = new_header()
        facts = one_turn()

        async with opened(open_store()) as store:
            await store.create(header)
            await store.append(header.id, facts, first_seq=0, durable=False)
            await store.append(header.id, [], first_seq=7, durable=True)
            _, loaded = await store.load(header.id)

        assert bytes_of(loaded) == bytes_of(facts)

    async def test_the_batch_is_taken_when_append_is_called(self, open_store: OpenStore) -> None:
        """Spec loop 1.9: append snapshots the batch at call time."""
        header = new_header()
        facts = one_turn()
        wanted = bytes_of(facts)

        async def write() -> None:
            await store.append(header.id, facts, first_seq=0, durable=False)

        async def forget() -> None:
            facts.clear()

        async with opened(open_store()) as store:
            await store.create(header)
            async with create_task_group() as tasks:
                tasks.start_soon(write)
                tasks.start_soon(forget)
            _, loaded = await store.load(header.id)

        assert bytes_of(loaded) == wanted

    @pytest.mark.parametrize("first_seq", [0, 6, 8])
    async def test_a_wrong_place_is_refused_and_nothing_is_written(
        self, open_store: OpenStore, everything_stored: Callable[[], Any], first_seq: int
    ) -> None:
        """Spec loop 1.9: the first seq must equal the stored next one."""
        header = new_header()
        async with opened(open_store()) as store:
            await store.create(header)
            await store.append(header.id, one_turn(), first_seq=0, durable=False)
            before = everything_stored()

            with pytest.raises(ValueError, match=f"goes on at seq 7, not at {first_seq}"):
                await store.append(header.id, one_turn(2, first_seq), first_seq=first_seq, durable=False)

            assert everything_stored() == before

    async def test_a_gap_inside_a_batch_is_refused_and_nothing_is_written(
        self, open_store: OpenStore, everything_stored: Callable[[], Any]
    ) -> None:
        """Spec loop 8.13, contract: a mid-batch gap is rejected."""
        header = new_header()
        facts = one_turn()
        del facts[3]
        async with opened(open_store()) as store:
            await store.create(header)
            before = everything_stored()

            with pytest.raises(ValueError, match="seq 4 stands in place 3"):
                await store.append(header.id, facts, first_seq=0, durable=False)

            assert everything_stored() == before

    async def test_a_fact_json_cannot_carry_is_refused_by_name(
        self, open_store: OpenStore, everything_stored: Callable[[], Any]
    ) -> None:
        """Spec loop 1.9: non-JSON data is rejected, naming the event type."""
        header = new_header()
        facts = placed_facts([*one_turn(), AssistantChunk(2, 1, 1, TextDelta(0, "\ud800"))])
        async with opened(open_store()) as store:
            await store.create(header)
            before = everything_stored()

            with pytest.raises(ValueError, match="fact 7, assistant/chunk,"):
                await store.append(header.id, facts, first_seq=0, durable=False)

            assert everything_stored() == before

    async def test_a_taken_id_is_refused_whatever_the_directory(
        self, open_store: OpenStore, everything_stored: Callable[[], Any]
    ) -> None:
        """Spec loop 1.10: create of an id already stored under any cwd is rejected."""
        header = new_header("/")
        async with opened(open_store()) as store:
            await store.create(header)
            before = everything_stored()

        for cwd in ("/", "/elsewhere", None):
            async with opened(open_store()) as store:
                with pytest.raises(Duplicate):
                    await store.create(SessionHeader(header.id, TIME_MS + 1, cwd))

        assert everything_stored() == before

    async def test_an_unknown_session_is_not_found(
        self, open_store: OpenStore, everything_stored: Callable[[], Any]
    ) -> None:
        """Store seam: NotFound only when there truly is no such session; looking creates nothing."""
        async with opened(open_store()) as store:
            empty = everything_stored()
            with pytest.raises(NotFound):
                await store.load(str(uuid4()))
            assert everything_stored() == empty

            await store.create(new_header())
            one = everything_stored()
            with pytest.raises(NotFound):
                await store.load(str(uuid4()))
            assert everything_stored() == one

    @pytest.mark.parametrize("session_id", HOSTILE_IDS, ids=lambda it: ascii(it)[:20])
    async def test_an_id_no_store_made_is_not_found_and_nothing_is_made(
        self, open_store: OpenStore, everything_stored: Callable[[], Any], session_id: str
    ) -> None:
        """Our promise: ids come from outside; what could not be ours never reaches the storage."""
        async with opened(open_store()) as store:
            await store.create(new_header())
            before = everything_stored()

            with pytest.raises(NotFound) as raised:
                await store.load(session_id)
            with pytest.raises(NotFound):
                await store.append(session_id, [], first_seq=0, durable=True)
            with pytest.raises(ValueError, match="is no session id"):
                await store.create(SessionHeader(session_id, TIME_MS))

        assert everything_stored() == before
        assert len(str(raised.value)) < 200

    async def test_a_session_nobody_opened_is_not_appended_to(self, open_store: OpenStore) -> None:
        """Our promise: a store only continues a log whose end it has seen."""
        header = new_header()
        async with opened(open_store()) as store:
            await store.create(header)

        async with opened(open_store()) as store:
            with pytest.raises(NotFound, match="create or load it first"):
                await store.append(header.id, one_turn(), first_seq=0, durable=False)

    @pytest.mark.parametrize("durable", [False, True])
    async def test_a_failed_append_keeps_what_was_stored_and_may_be_repeated(
        self,
        open_store: OpenStore,
        failing_writes: FailingWrites,
        everything_stored: Callable[[], Any],
        durable: bool,
    ) -> None:
        """Spec loop 1.10: on failure truncate back to the size before the write and raise."""
        header = new_header()
        first, second = one_turn(1), one_turn(2, 7, text="long " * 1_000)
        async with opened(open_store()) as store:
            await store.create(header)
            await store.append(header.id, first, first_seq=0, durable=durable)
            before = everything_stored()

            with failing_writes(500), pytest.raises(StoreError) as raised:
                await store.append(header.id, second, first_seq=7, durable=durable)
            after_failure = everything_stored()
            await store.append(header.id, second, first_seq=7, durable=durable)
            _, loaded = await store.load(header.id)

        assert raised.value.kind == "io"
        assert after_failure == before
        assert bytes_of(loaded) == bytes_of([*first, *second])

    async def test_a_failed_create_leaves_no_session(
        self, open_store: OpenStore, failing_writes: FailingWrites
    ) -> None:
        """Our promise: a half-written header is never visible."""
        header = new_header()
        async with opened(open_store()) as store:
            with failing_writes(10), pytest.raises(StoreError) as raised:
                await store.create(header)
            with pytest.raises(NotFound):
                await store.load(header.id)
            await store.create(header)

            assert await store.load(header.id) == (header, [])
        assert raised.value.kind == "io"

    async def test_a_cancelled_append_leaves_the_store_where_the_log_ends(
        self, open_store: OpenStore
    ) -> None:
        """Our promise: cancelling the writer never makes the next append fail."""
        header = new_header()
        first, second = one_turn(1), one_turn(2, 7)
        async with opened(open_store()) as store:
            await store.create(header)

            with CancelScope() as scope:
                scope.cancel()
                await store.append(header.id, first, first_seq=0, durable=True)
            await store.append(header.id, second, first_seq=7, durable=False)
            _, loaded = await store.load(header.id)

        assert bytes_of(loaded) == bytes_of([*first, *second])

    async def test_sessions_are_written_side_by_side(self, open_store: OpenStore) -> None:
        """Store seam: all methods may be called concurrently for different sessions."""
        headers = [new_header("/") for _ in range(8)]
        wanted = {header.id: one_turn(1, text=header.id) for header in headers}

        async def write(header: SessionHeader) -> None:
            await store.create(header)
            for fact in wanted[header.id]:
                await store.append(header.id, [fact], first_seq=fact.seq, durable=False)

        async with opened(open_store()) as store:
            async with create_task_group() as tasks:
                for header in headers:
                    tasks.start_soon(write, header)

            loaded = {header.id: await store.load(header.id) for header in headers}

        assert {id: bytes_of(facts) for id, (_, facts) in loaded.items()} == {
            id: bytes_of(facts) for id, facts in wanted.items()
        }

    async def test_one_session_may_be_loaded_twice_at_once(self, open_store: OpenStore) -> None:
        """Our promise: whichever load ends last, the log goes on at its end."""
        header = new_header()
        first, second = one_turn(1), one_turn(2, 7)
        async with opened(open_store()) as store:
            await store.create(header)
            await store.append(header.id, first, first_seq=0, durable=False)

        async with opened(open_store()) as store:
            async with create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(store.load, header.id)
            await store.append(header.id, second, first_seq=7, durable=False)
            _, loaded = await store.load(header.id)

        assert bytes_of(loaded) == bytes_of([*first, *second])

    @pytest.mark.parametrize("kept", range(1, 7))
    async def test_a_log_that_ends_inside_a_turn_is_refused_untouched(
        self, open_store: OpenStore, everything_stored: Callable[[], Any], kept: int
    ) -> None:
        """Contract 1: until the sessions issue, a log that doesn't balance is refused, file untouched."""
        header = new_header()
        facts = [*one_turn(1), *one_turn(2, 7)[:kept]]
        async with opened(open_store()) as store:
            await store.create(header)
            await store.append(header.id, facts, first_seq=0, durable=False)
            before = everything_stored()

        async with opened(open_store()) as store:
            with pytest.raises(StoreError, match=header.id) as raised:
                await store.load(header.id)

        assert raised.value.kind == "unclosed"
        assert everything_stored() == before

    async def test_facts_of_the_session_may_stand_between_turns(self, open_store: OpenStore) -> None:
        """Contract 1: session-scoped facts may stand between turns, and the scanner accepts them."""
        header = new_header()
        first, second, third = (PluginFact("title", "set", {"title": at}) for at in range(3))
        facts = placed_facts([first, *one_turn(1), second, *one_turn(2), third])
        async with opened(open_store()) as store:
            await store.create(header)
            await store.append(header.id, facts, first_seq=0, durable=False)

        async with opened(open_store()) as store:
            _, loaded = await store.load(header.id)

        assert bytes_of(loaded) == bytes_of(facts)

    async def test_closing_twice_is_fine(self, open_store: OpenStore) -> None:
        """Store seam: aclose is idempotent."""
        store = open_store()
        await store.create(new_header())

        await store.aclose()
        await store.aclose()
