"""What every store promises, as one suite: a backend subclasses `StoreContract` and says how to open it.

Owns the promises of the seam in `agent_loop.persistence.store`. What one backend does on its own disk
(layout, torn rows, formats) belongs to that backend's tests.
"""

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import orjson
import pytest
from anyio import CancelScope, create_task_group, fail_after, to_thread
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_loop.chunks import TextDelta
from agent_loop.errors import Duplicate, HarnessError, NotFound, StoreError
from agent_loop.events.facts import (
    AssistantChunk,
    AssistantRun,
    LoggedFact,
    LogRow,
    PluginFact,
    SessionTitle,
    TurnEnd,
    UserMessage,
)
from agent_loop.events.facts_json import fact_to_json
from agent_loop.messages import USER, Text
from agent_loop.persistence.store import Page, Store
from agent_loop.session.header import SessionHeader
from agent_loop.session.repair import closers
from tests.doubles.facts import STRATEGIES, TIME_MS, any_fact, one_turn, placed_facts, runs

OpenStore = Callable[[], Store]
FailingWrites = Callable[[int], AbstractContextManager[None]]

REPOSITORY = Path(__file__).parents[3]
WAIT_S = 20.0
# The clock that dates a write may be the kernel's coarse one.
CLOCK_TICK_S = 0.02

# Each example makes a session of its own, so that sharing a fixture's store hides nothing.
unhurried_in_fixtures = settings(
    max_examples=5,
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


def a_prompt(text: str, turn: int = 1, first_seq: int = 0) -> list[LoggedFact]:
    """A whole turn that somebody began with these words."""
    facts = one_turn(turn, first_seq)
    facts[1] = UserMessage(turn, f"m{turn}", (Text(text),), USER)
    return placed_facts(facts, first_seq)


async def locked_out(store: Store, session_id: str) -> None:
    """The store does not get the session because another one has it, and says so in words."""
    with pytest.raises(StoreError, match=f"{session_id} is open in another process") as raised:
        await store.load(session_id)
    assert raised.value.kind == "locked"


async def write(store: Store, header: SessionHeader, facts: Sequence[LogRow]) -> None:
    """A new session with these facts, given back at once."""
    await store.create(header)
    await store.append(header.id, facts, first_seq=0, durable=False)
    await store.release(header.id)


async def all_pages(store: Store, limit: int, cwd: str | None = None) -> list[Page]:
    pages = [await store.list_sessions(cwd=cwd, cursor=None, limit=limit)]
    while (cursor := pages[-1].cursor) is not None:
        pages.append(await store.list_sessions(cwd=cwd, cursor=cursor, limit=limit))
    return pages


async def listed(store: Store, cwd: str | None = None) -> list[str]:
    """The ids of all sessions in the order of the list."""
    page = await store.list_sessions(cwd=cwd, cursor=None, limit=1_000)
    return [it.header.id for it in page.sessions]


async def titles(store: Store) -> dict[str, str]:
    page = await store.list_sessions(cwd=None, cursor=None, limit=1_000)
    return {it.header.id: it.title for it in page.sessions}


_CLAIMANT = """
import sys, anyio
from agent_loop.errors import StoreError
{recipe}
async def main():
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        await store.load({session_id!r})
        print("got", flush=True)
    except StoreError as error:
        print(error.kind, flush=True)
    sys.stdin.readline()
    await store.aclose()
anyio.run(main)
"""


@contextmanager
def claimant(recipe: str, session_id: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that loads the session when told to, says what came of it, and keeps it until told again."""
    pipe = subprocess.PIPE
    code = _CLAIMANT.format(recipe=recipe, session_id=session_id)
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True, bufsize=1
    ) as process:
        try:
            assert said(process) == "ready"
            yield process
        finally:
            process.kill()


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


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
    def recipe(self) -> str:
        """Python that makes `store` on the same place, for a process of its own."""
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

    async def test_a_check_that_fails_leaves_no_session(self, open_store: OpenStore) -> None:
        """Store seam: what `check` raises ends the creation, and the id is still free."""
        header = new_header()

        def refuse() -> None:
            raise HarnessError("/w is no directory", code="CWD")

        async with opened(open_store()) as store:
            with pytest.raises(HarnessError, match="no directory"):
                await store.create(header, refuse)
            with pytest.raises(NotFound):
                await store.load(header.id)

            await store.create(header, lambda: None)

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

    async def test_making_a_session_again_takes_nothing_from_whoever_has_it(
        self, open_store: OpenStore
    ) -> None:
        """Spec loop 1.10: a refused create leaves the session, its claim and its end as they were."""
        header = new_header()
        async with opened(open_store()) as store, opened(open_store()) as other:
            await store.create(header)
            for refused in (store, other):
                with pytest.raises(Duplicate):
                    await refused.create(header)

            await store.append(header.id, one_turn(), first_seq=0, durable=False)
            await locked_out(other, header.id)

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
                await store.peek(session_id)
            with pytest.raises(NotFound):
                await store.append(session_id, [], first_seq=0, durable=True)
            with pytest.raises(NotFound):
                await store.repair(session_id, [])
            assert not await store.delete(session_id)
            await store.release(session_id)
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

    async def test_a_cancelled_append_happened_or_did_not(self, open_store: OpenStore) -> None:
        """Our promise: whoever was cancelled in an append knows where the log ends, and goes on there."""
        header = new_header()
        first, second = one_turn(1), one_turn(2, 7)
        async with opened(open_store()) as store:
            await store.create(header)

            with CancelScope() as scope:
                scope.cancel()
                await store.append(header.id, first, first_seq=0, durable=True)
            if scope.cancelled_caught:
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
    async def test_a_log_that_ends_inside_a_turn_is_given_whole_and_repaired(
        self, open_store: OpenStore, kept: int
    ) -> None:
        """Spec loop 1.10, crash repair: what the person saw is kept, and closers are stored behind it."""
        header = new_header()
        facts = [*one_turn(1), *one_turn(2, 7)[:kept]]
        async with opened(open_store()) as store:
            await write(store, header, facts)

        async with opened(open_store()) as store:
            _, loaded = await store.load(header.id)
            added = closers(loaded)
            await store.repair(header.id, added)
            end = len(facts) + len(added)
            await store.append(header.id, one_turn(3, end), first_seq=end, durable=False)

        async with opened(open_store()) as store:
            _, after = await store.load(header.id)
        assert bytes_of(loaded) == bytes_of(facts)
        assert isinstance(added[-1], TurnEnd)
        assert bytes_of(after) == bytes_of([*facts, *added, *one_turn(3, end)])

    async def test_repairing_a_whole_log_changes_nothing(
        self, open_store: OpenStore, everything_stored: Callable[[], Any]
    ) -> None:
        """Store seam: both the torn tail and the closers may be none."""
        header = new_header()
        async with opened(open_store()) as store:
            await write(store, header, one_turn())
            await store.load(header.id)
            before = everything_stored()

            await store.repair(header.id, [])

            assert everything_stored() == before

    async def test_closers_in_a_wrong_place_are_refused(
        self, open_store: OpenStore, everything_stored: Callable[[], Any]
    ) -> None:
        """Spec loop 1.9: what is added stands behind what is stored, also when it mends a log."""
        header = new_header()
        async with opened(open_store()) as store:
            await write(store, header, one_turn())
            await store.load(header.id)
            before = everything_stored()

            with pytest.raises(ValueError, match="seq 8 stands in place 7"):
                await store.repair(header.id, one_turn(2, 8))

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

    async def test_a_session_has_one_writer(self, open_store: OpenStore) -> None:
        """Issue, single writer: two never write one session; the second load says `locked`."""
        made, loaded = new_header(), new_header()
        async with opened(open_store()) as first, opened(open_store()) as second:
            await write(first, loaded, one_turn())
            await first.create(made)
            await first.load(loaded.id)

            await locked_out(second, made.id)
            await locked_out(second, loaded.id)
            with pytest.raises(NotFound, match="create or load it first"):
                await second.append(loaded.id, one_turn(2, 7), first_seq=7, durable=False)
            await first.append(loaded.id, one_turn(2, 7), first_seq=7, durable=False)

    async def test_a_refused_claim_is_not_in_the_way_later(self, open_store: OpenStore) -> None:
        """Our promise: whoever was told `locked` may try again, and takes over where the first one ended."""
        header = new_header()
        async with opened(open_store()) as second:
            async with opened(open_store()) as first:
                await first.create(header)
                await locked_out(second, header.id)
                await first.append(header.id, one_turn(), first_seq=0, durable=False)

            _, rows = await second.load(header.id)
            await second.append(header.id, one_turn(2, 7), first_seq=7, durable=False)

        assert bytes_of(rows) == bytes_of(one_turn())

    async def test_a_released_session_is_anybodys(self, open_store: OpenStore) -> None:
        """Store seam: release gives the claim back, once or twice, known or not."""
        header = new_header()
        async with opened(open_store()) as first, opened(open_store()) as second:
            await first.create(header)
            await first.release(header.id)
            await first.release(header.id)
            await first.release(str(uuid4()))

            await second.load(header.id)
            with pytest.raises(NotFound, match="create or load it first"):
                await first.append(header.id, one_turn(), first_seq=0, durable=False)
            await locked_out(first, header.id)

    async def test_a_closed_store_holds_nothing(self, open_store: OpenStore) -> None:
        """Store seam: aclose gives up every claim, and may be repeated."""
        headers = [new_header() for _ in range(3)]
        first = open_store()
        for header in headers:
            await first.create(header)

        await first.aclose()
        await first.aclose()

        async with opened(open_store()) as second:
            for header in headers:
                assert await second.load(header.id) == (header, [])

    async def test_closing_an_unused_store_is_fine(self, open_store: OpenStore) -> None:
        """Our promise: a server nobody talks to closes as quietly as any."""
        await open_store().aclose()

    async def test_loading_twice_needs_one_release(self, open_store: OpenStore) -> None:
        """Store seam: a claim is had or not; it is not counted."""
        header = new_header()
        async with opened(open_store()) as first, opened(open_store()) as second:
            await first.create(header)
            await first.load(header.id)
            await first.load(header.id)

            await first.release(header.id)

            await second.load(header.id)

    async def test_a_failed_load_claims_nothing(self, open_store: OpenStore) -> None:
        """Our promise: asking for a session that is not there keeps nobody from making it."""
        header = new_header()
        async with opened(open_store()) as first, opened(open_store()) as second:
            with pytest.raises(NotFound):
                await first.load(header.id)

            await second.create(header)

            await locked_out(first, header.id)

    async def test_peek_needs_no_claim(self, open_store: OpenStore) -> None:
        """Store seam: readers read what is there, whoever writes it, and are in nobody's way."""
        header = new_header()
        async with opened(open_store()) as first, opened(open_store()) as second:
            await first.create(header)
            await first.append(header.id, one_turn(), first_seq=0, durable=False)

            seen, rows = await second.peek(header.id)
            await first.append(header.id, one_turn(2, 7), first_seq=7, durable=False)
            with pytest.raises(NotFound):
                await second.append(header.id, [], first_seq=7, durable=False)
            with pytest.raises(NotFound):
                await second.peek(str(uuid4()))

        assert (seen, bytes_of(rows)) == (header, bytes_of(one_turn()))

    async def test_of_two_processes_one_gets_the_session_until_it_is_killed(
        self, open_store: OpenStore, recipe: str
    ) -> None:
        """Issue, single writer: the lock dies with its owner, kill -9 included."""
        header = new_header()
        async with opened(open_store()) as store:
            await write(store, header, one_turn())

        def race() -> None:
            with claimant(recipe, header.id) as one, claimant(recipe, header.id) as other:
                tell(one)
                tell(other)
                answers = {said(one): one, said(other): other}
                assert set(answers) == {"got", "locked"}
                anyio.run(still_locked)

                answers["got"].kill()
                answers["got"].wait(WAIT_S)
                anyio.run(free_again)

        async def still_locked() -> None:
            async with opened(open_store()) as store:
                await locked_out(store, header.id)

        async def got(store: Store) -> bool:
            # A server may notice a moment later that the connection of a dead process is gone.
            with suppress(StoreError):
                await store.load(header.id)
                return True
            return False

        async def free_again() -> None:
            async with opened(open_store()) as store:
                with fail_after(WAIT_S):
                    while not await got(store):  # noqa: ASYNC110 - a server tells nobody that a lock is free
                        await anyio.sleep(CLOCK_TICK_S)
                await store.append(header.id, one_turn(2, 7), first_seq=7, durable=True)

        await to_thread.run_sync(race)

    async def test_a_list_shows_who_wrote_last_first(self, open_store: OpenStore) -> None:
        """ACP, session/list: newest first, by the time of the last write."""
        old, new = new_header(), new_header("/")
        async with opened(open_store()) as store:
            await write(store, old, one_turn())
            await anyio.sleep(CLOCK_TICK_S)
            await write(store, new, one_turn())
            assert await listed(store) == [new.id, old.id]

            await anyio.sleep(CLOCK_TICK_S)
            await store.load(old.id)
            await store.append(old.id, one_turn(2, 7), first_seq=7, durable=False)

        async with opened(open_store()) as store:
            page = await store.list_sessions(cwd=None, cursor=None, limit=10)
        assert [it.header for it in page.sessions] == [old, new]
        assert page.sessions[0].updated_at > page.sessions[1].updated_at > TIME_MS

    async def test_reading_a_session_does_not_make_it_newer(self, open_store: OpenStore) -> None:
        """Our promise: looking into an old thread does not bring it to the top of the list."""
        old, new = new_header(), new_header()
        async with opened(open_store()) as store:
            await write(store, old, one_turn())
            await anyio.sleep(CLOCK_TICK_S)
            await write(store, new, one_turn())
            await anyio.sleep(CLOCK_TICK_S)

            await store.peek(old.id)
            await store.load(old.id)
            await store.repair(old.id, [])
            await store.append(old.id, [], first_seq=7, durable=True)

            assert await listed(store) == [new.id, old.id]

    @pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
    async def test_pages_follow_one_another_without_gap_or_repeat(
        self, open_store: OpenStore, limit: int
    ) -> None:
        """ACP, session/list: a page is bounded, and its cursor leads on."""
        headers = [new_header() for _ in range(7)]
        async with opened(open_store()) as store:
            for header in headers:
                await write(store, header, one_turn())

            pages = await all_pages(store, limit)
            whole = await store.list_sessions(cwd=None, cursor=None, limit=100)

        rows = [it for page in pages for it in page.sessions]
        assert rows == list(whole.sessions)
        assert rows == sorted(rows, key=lambda it: (it.updated_at, it.header.id), reverse=True)
        assert {it.header.id for it in rows} == {it.id for it in headers}
        assert [len(page.sessions) for page in pages[:-1]] == [limit] * (len(pages) - 1)
        assert len(pages) == -(-7 // limit)

    async def test_a_cursor_outlives_the_store_and_what_it_points_at(self, open_store: OpenStore) -> None:
        """ACP, session/list: a cursor is a place in the order, whoever is asked and whatever was deleted."""
        headers = [new_header() for _ in range(4)]
        async with opened(open_store()) as store:
            for header in headers:
                await write(store, header, one_turn())
            order = await listed(store)
            first = await store.list_sessions(cwd=None, cursor=None, limit=2)
            await store.delete(order[1])

        async with opened(open_store()) as store:
            rest = await store.list_sessions(cwd=None, cursor=first.cursor, limit=10)
        assert [it.header.id for it in rest.sessions] == order[2:]
        assert rest.cursor is None

    @pytest.mark.parametrize(
        "cursor", ["", "x", "ключ", "bnVsbA==", "W10=", "WzEsMl0=", "WyIxIiwieCJd", "\ud800", "A" * 10_000]
    )
    async def test_a_cursor_nobody_gave_is_refused(self, open_store: OpenStore, cursor: str) -> None:
        """ACP, session/list: an invalid cursor is an error of the asker."""
        async with opened(open_store()) as store:
            await write(store, new_header(), one_turn())

            with pytest.raises(ValueError, match="cursor"):
                await store.list_sessions(cwd=None, cursor=cursor, limit=10)

    async def test_an_empty_store_has_an_empty_list(self, open_store: OpenStore) -> None:
        """ACP, session/list: nothing stored is no error."""
        async with opened(open_store()) as store:
            assert await store.list_sessions(cwd=None, cursor=None, limit=10) == Page((), None)
            assert await store.list_sessions(cwd="/", cursor=None, limit=10) == Page((), None)

    async def test_a_list_may_be_of_one_directory_by_its_real_path(
        self, open_store: OpenStore, tmp_path: Path
    ) -> None:
        """Issue, session/list: cwd filter by real path; a link leads to the same sessions."""
        (tmp_path / "here").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "here")
        plain, linked = new_header(str(tmp_path / "here")), new_header(str(tmp_path / "link"))
        below, nowhere = new_header(str(tmp_path / "here/below")), new_header(None)
        async with opened(open_store()) as store:
            for header in (plain, linked, below, nowhere):
                await write(store, header, one_turn())

            for spelled in ("here", "link", "here/../link/."):
                found = await listed(store, os.path.join(tmp_path, spelled))
                assert set(found) == {plain.id, linked.id}
            assert await listed(store, str(tmp_path / "here/below")) == [below.id]
            assert await listed(store, str(tmp_path)) == []
            pages = await all_pages(store, 1, str(tmp_path / "here"))

        assert [len(page.sessions) for page in pages] == [1, 1]

    async def test_a_session_nobody_spoke_in_is_not_listed(self, open_store: OpenStore) -> None:
        """Store seam: stored sessions with at least one turn."""
        silent, empty, begun = new_header(), new_header(), new_header()
        title = placed_facts([SessionTitle("named, not used", "user")])
        async with opened(open_store()) as store:
            await write(store, silent, title)
            await write(store, empty, [])
            await write(store, begun, one_turn()[:1])

            assert await listed(store) == [begun.id]

    async def test_a_session_is_called_by_its_first_words_until_it_is_named(
        self, open_store: OpenStore
    ) -> None:
        """Issue, titles: deterministic from the first prompt; the last name given stays, also tomorrow."""
        header, other = new_header(), new_header()
        names = [SessionTitle("Первое имя", "prompt"), SessionTitle('Ünïcode 🦉 "quoted" \\', "user")]
        async with opened(open_store()) as store:
            await write(store, header, a_prompt("\n  Mend   the roof \nbefore winter"))
            await write(store, other, a_prompt("word " * 40))
            before = await titles(store)
            await store.load(header.id)
            await store.append(header.id, placed_facts(names[:1], 7), first_seq=7, durable=False)
            between = await titles(store)
            await store.append(header.id, placed_facts(names[1:], 8), first_seq=8, durable=True)
            await store.append(header.id, a_prompt("more", 2, 9), first_seq=9, durable=False)

        async with opened(open_store()) as store:
            after = await titles(store)
        assert before[header.id] == "Mend the roof"
        assert before[other.id] == "word " * 11 + "word…"
        assert between[header.id] == names[0].title
        assert after == {**before, header.id: names[1].title}

    async def test_a_title_among_the_closers_counts(self, open_store: OpenStore) -> None:
        """Store seam: what repair adds is as good as what append adds."""
        header = new_header()
        async with opened(open_store()) as store:
            await write(store, header, one_turn())
            await store.load(header.id)
            await store.repair(header.id, placed_facts([SessionTitle("mended", "prompt")], 7))

            assert await titles(store) == {header.id: "mended"}

    async def test_a_prompt_without_words_gives_no_title(self, open_store: OpenStore) -> None:
        """Our promise: a session begun with a picture is listed all the same."""
        header = new_header()
        async with opened(open_store()) as store:
            await write(store, header, a_prompt(" \n\t"))

            assert await titles(store) == {header.id: ""}

    async def test_a_deleted_session_is_gone(
        self, open_store: OpenStore, everything_stored: Callable[[], Any]
    ) -> None:
        """ACP, session/delete: idempotent, and the others stay."""
        header, other = new_header("/"), new_header("/")
        async with opened(open_store()) as store:
            await write(store, other, one_turn())
            before = everything_stored()
            named = placed_facts([SessionTitle("soon gone", "user")], 7)
            await write(store, header, [*one_turn(), *named])

            assert await store.delete(header.id)
            assert not await store.delete(header.id)

            assert everything_stored() == before
            assert await listed(store) == [other.id]
            with pytest.raises(NotFound):
                await store.load(header.id)
            with pytest.raises(NotFound):
                await store.peek(header.id)

    async def test_deleting_what_never_was_is_fine(self, open_store: OpenStore) -> None:
        """ACP, session/delete: idempotent from the first call on."""
        async with opened(open_store()) as store:
            assert not await store.delete(str(uuid4()))

    async def test_a_session_another_process_has_open_is_not_deleted(
        self, open_store: OpenStore, everything_stored: Callable[[], Any]
    ) -> None:
        """Store seam, delete: `locked`, another process is at it."""
        header = new_header()
        async with opened(open_store()) as first, opened(open_store()) as second:
            await first.create(header)
            before = everything_stored()

            with pytest.raises(StoreError, match="open in another process") as raised:
                await second.delete(header.id)

            assert raised.value.kind == "locked"
            assert everything_stored() == before
            await first.append(header.id, one_turn(), first_seq=0, durable=False)

    async def test_whoever_has_a_session_open_may_delete_it(self, open_store: OpenStore) -> None:
        """Store seam: the claim is no obstacle to its own holder; an id that is free may be used again."""
        header = new_header()
        async with opened(open_store()) as store:
            await store.create(header)
            await store.append(header.id, one_turn(), first_seq=0, durable=False)

            assert await store.delete(header.id)
            await store.release(header.id)

            with pytest.raises(NotFound):
                await store.append(header.id, one_turn(2, 7), first_seq=7, durable=False)
            await store.create(header)
            assert await store.load(header.id) == (header, [])
