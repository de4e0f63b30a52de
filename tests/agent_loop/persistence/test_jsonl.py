"""Holds the JSONL store to the store contract, and to its own promises about the disk."""

import fcntl
import os
import resource
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import Any

import anyio
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.chunks import TextDelta
from agent_loop.errors import Duplicate, NotFound, StoreError
from agent_loop.events.facts import AssistantChunk, AssistantRun, LogRow, SessionTitle, TurnEnd
from agent_loop.events.facts_json import fact_to_json
from agent_loop.persistence import files, jsonl
from agent_loop.persistence.jsonl import JsonlStore
from agent_loop.persistence.paths import bucket_name
from agent_loop.persistence.scan import read_log
from agent_loop.session.header import SessionHeader, header_to_json
from agent_loop.session.repair import closers
from tests.agent_loop.persistence.store_contract import (
    FailingWrites,
    OpenStore,
    StoreContract,
    bytes_of,
    new_header,
    opened,
    titles,
    unhurried_in_fixtures,
)
from tests.doubles.facts import TIME_MS, one_turn, placed_facts

Tree = dict[str, bytes | None]


def tree_of(root: Path) -> Tree:
    """Every path below `root`, with the bytes of the files."""
    paths = sorted(root.rglob("*")) if root.exists() else []
    return {str(path.relative_to(root)): path.read_bytes() if path.is_file() else None for path in paths}


@contextmanager
def largest_file(limit_bytes: int) -> Iterator[None]:
    """The kernel refuses to let any file of this process grow beyond the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "state"


@pytest.fixture
async def store(root: Path) -> AsyncIterator[JsonlStore]:
    async with on_disk(root) as store:
        yield store


class TestJsonlStore(StoreContract):
    @pytest.fixture
    def open_store(self, root: Path) -> OpenStore:
        return lambda: JsonlStore(root)

    @pytest.fixture
    def recipe(self, root: Path) -> str:
        return f"from agent_loop.persistence.jsonl import JsonlStore\nstore = JsonlStore({str(root)!r})"

    @pytest.fixture
    def failing_writes(self, root: Path) -> FailingWrites:
        def after(more_bytes: int) -> Any:
            sizes = [path.stat().st_size for path in root.rglob("*.jsonl")]
            return largest_file(max(sizes, default=0) + more_bytes)

        return after

    @pytest.fixture
    def everything_stored(self, root: Path) -> Callable[[], Tree]:
        return lambda: tree_of(root)


def log_path(root: Path) -> Path:
    """The only log there is."""
    (path,) = root.rglob("*.jsonl")
    return path


@asynccontextmanager
async def on_disk(root: Path) -> AsyncIterator[JsonlStore]:
    """A store for one block, closed behind it."""
    async with opened(store := JsonlStore(root)):
        yield store


async def stored(root: Path, header: SessionHeader, turns: int = 2) -> Path:
    """A session of whole turns on disk, its writer gone."""
    async with on_disk(root) as store:
        await store.create(header)
        for turn in range(turns):
            await store.append(header.id, one_turn(turn + 1, turn * 7), first_seq=turn * 7, durable=False)
    return log_path(root)


async def loaded_by(root: Path, session_id: str) -> tuple[SessionHeader, list[LogRow]]:
    """What another process would load."""
    async with on_disk(root) as store:
        return await store.load(session_id)


async def refusal(root: Path, session_id: str) -> str:
    """The kind of the error loading raises; the log must be as it was, stay refused, and unclaimed."""
    before = tree_of(root)
    async with on_disk(root) as store, on_disk(root) as other:
        with pytest.raises(StoreError) as raised:
            await store.load(session_id)
        for again in (store.load, other.load, other.peek):
            with pytest.raises(StoreError) as repeated:
                await again(session_id)
            assert repeated.value.kind == raised.value.kind
        with pytest.raises(NotFound):
            await store.append(session_id, [], first_seq=0, durable=False)
    assert tree_of(root) == before
    return raised.value.kind


async def mended(root: Path, session_id: str, whole: bytes) -> int:
    """How many rows load gives of a torn log; repair cuts it to `whole`, and it goes on from there."""
    torn = log_path(root).read_bytes()
    async with on_disk(root) as store:
        _, rows = await store.load(session_id)
        assert log_path(root).read_bytes() == torn
        with pytest.raises(StoreError, match="does not end where it was left"):
            await store.append(session_id, one_turn(3, len(rows)), first_seq=len(rows), durable=False)

        await store.repair(session_id, [])
        assert log_path(root).read_bytes() == whole
        await store.append(session_id, one_turn(3, len(rows)), first_seq=len(rows), durable=False)
    return len(rows)


def rewritten(path: Path, change: Callable[[list[bytes]], object]) -> None:
    """The log with its rows changed in place, every one still terminated."""
    rows = path.read_bytes().splitlines()
    change(rows)
    path.write_bytes(b"".join(row + b"\n" for row in rows))


async def test_a_log_is_a_header_row_and_one_row_per_fact(root: Path, tmp_path: Path) -> None:
    """Spec loop 1.10: line 0 is the header, every other line one event object, verbatim."""
    header = SessionHeader("s-1", TIME_MS, str(tmp_path), "s-0")

    path = await stored(root, header, turns=1)

    rows = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert rows == [
        {
            "type": "session",
            "version": 1,
            "id": "s-1",
            "createdAt": TIME_MS,
            "cwd": str(tmp_path),
            "parent": "s-0",
        },
        *(fact_to_json(fact) for fact in one_turn()),
    ]


async def test_a_run_is_one_row(root: Path, store: JsonlStore) -> None:
    """Contract 1: `assistant/run` stands for many chunk facts; a file without it is several times as long."""
    header = new_header()
    run = AssistantRun(1, 1, 1, 0, TextDelta, 0, TIME_MS)
    run.texts, run.dt_ms = ["Hel", "lo"], [0, 12]

    await store.create(header)
    await store.append(header.id, [run], first_seq=0, durable=False)

    assert [orjson.loads(line) for line in log_path(root).read_bytes().splitlines()[1:]] == [
        {
            "seq": 0,
            "time": TIME_MS,
            "type": "assistant/run",
            "data": {
                "turn": 1,
                "step": 1,
                "attempt": 1,
                "index": 0,
                "kind": "text",
                "texts": ["Hel", "lo"],
                "dt_ms": [0, 12],
            },
        }
    ]


async def test_a_session_lies_in_the_folder_of_its_directory_as_spelled(
    root: Path, store: JsonlStore
) -> None:
    """Our promise: `sessions/cwd-<first 12 hex of sha256(cwd)>/<id>.jsonl`, `_no-cwd` without one."""

    await store.create(SessionHeader("here", TIME_MS, "/some/where"))
    await store.create(SessionHeader("nowhere", TIME_MS))

    bucket = f"sessions/cwd-{sha256(b'/some/where').hexdigest()[:12]}"
    assert [path for path, data in tree_of(root).items() if data is not None] == [
        "sessions/_no-cwd/nowhere.jsonl",
        f"{bucket}/here.jsonl",
    ]


async def test_a_session_is_found_whatever_becomes_of_a_link_on_its_way(root: Path, tmp_path: Path) -> None:
    """Our promise: yesterday's thread reopens, also when `current` points elsewhere today."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    link = tmp_path / "current"
    link.symlink_to(tmp_path / "one")
    header = SessionHeader("linked", TIME_MS, str(link))
    await stored(root, header, turns=0)

    link.unlink()
    link.symlink_to(tmp_path / "two")

    assert await loaded_by(root, "linked") == (header, [])


async def test_nobody_else_may_read_a_session(root: Path) -> None:
    """Spec loop 1.10: directories 0700, files 0600."""
    path = await stored(root, new_header("/"))

    modes = {it: stat.S_IMODE(it.stat().st_mode) for it in (root, *root.rglob("*"))}

    assert modes == {it: 0o600 if it == path else 0o700 for it in modes}


async def test_a_relative_root_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spec loop 1.10: root is resolved to absolute once."""
    monkeypatch.chdir(tmp_path)
    async with opened(JsonlStore("state")) as store:
        monkeypatch.chdir("/")

        await store.create(new_header())

    assert log_path(tmp_path / "state")


async def test_opening_a_store_makes_nothing(root: Path) -> None:
    """Our promise: a server nobody talks to leaves no trace."""
    await JsonlStore(root).aclose()

    assert not root.exists()


async def test_a_header_longer_than_a_block_comes_back(root: Path) -> None:
    """Spec loop 8.13: header > 8 KiB."""
    header = new_header("/" + "/".join(["long-name" * 20] * 60))
    await stored(root, header, turns=1)

    loaded, _ = await loaded_by(root, header.id)

    assert loaded == header


async def test_a_header_json_cannot_carry_is_refused(root: Path) -> None:
    """Our promise: what cannot be read back is never written."""
    with pytest.raises(ValueError, match="the header cannot be written as JSON"):
        await JsonlStore(root).create(SessionHeader("s", TIME_MS, parent="\ud800"))

    assert not root.exists()


async def test_two_creators_of_one_id_get_one_session(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spec loop 1.10: publishing with a hard link fails if the target exists; another process may win."""
    header = new_header()
    await stored(root, header, turns=1)
    before = tree_of(root)
    monkeypatch.setattr(JsonlStore, "_find", lambda *_: None)

    with pytest.raises(Duplicate):
        await JsonlStore(root).create(header)

    assert tree_of(root) == before


@pytest.mark.parametrize("cut", [1, 20])
async def test_a_torn_last_row_is_left_out_and_cut_off(root: Path, cut: int) -> None:
    """Spec loop 1.10: only newline-terminated lines count."""
    header = new_header()
    path = await stored(root, header)
    rows = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(rows)[:-cut])

    assert await mended(root, header.id, b"".join(rows[:-1])) == 13


async def test_cutting_a_torn_tail_reaches_the_disk_before_anything_is_added(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Store seam, repair: durably; a tail that came back behind new rows would be damage inside a log."""
    header = new_header()
    path = await stored(root, header)
    whole = path.read_bytes()
    path.write_bytes(whole + b"torn")
    synced: list[int] = []

    async with on_disk(root) as store:
        await store.load(header.id)
        monkeypatch.setattr(jsonl, "sync_data", lambda fd: synced.append(os.fstat(fd).st_size))
        monkeypatch.setattr(files, "sync_data", lambda fd: synced.append(os.fstat(fd).st_size))
        await store.repair(header.id, one_turn(3, 14))

    assert synced == [len(whole), path.stat().st_size]


async def test_a_disk_that_fails_under_repair_is_an_io_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Store seam: the tail stays until a later repair can cut it."""
    header = new_header()
    path = await stored(root, header)
    whole = path.read_bytes()
    path.write_bytes(whole + b"torn")

    def failing(*_: object) -> None:
        raise OSError(5, "Input/output error")

    async with on_disk(root) as store:
        await store.load(header.id)
        with monkeypatch.context() as patch:
            patch.setattr(os, "ftruncate", failing)
            with pytest.raises(StoreError, match="repair the log") as raised:
                await store.repair(header.id, [])
        await store.repair(header.id, [])

    assert raised.value.kind == "io"
    assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "tail",
    [
        b'{"seq":14,"type":"turn/start"',
        b"\0\0\0\0",
        b"{broken\n",
        b"\n",
        b"[]\n",
        b"17\n",
        b'{"seq":15,"time":1,"type":"step/start","data":{"turn":3,"step":1}}\n',
        b'{"seq":14,"time":1,"type":"step/start","data":{"turn":3}}\n',
        b'{"seq":14,"time":1,"type":["step/start"],"data":{}}\n',
        b'{"seq":20,"time":1,"type":"session/rainbow","data":{}}\n',
    ],
)
async def test_a_bad_tail_behind_the_last_turn_is_cut_off(root: Path, tail: bytes) -> None:
    """Contract 1: the torn tail starts at the first unterminated, unparsable or non-contiguous row."""
    header = new_header()
    path = await stored(root, header)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)

    assert await mended(root, header.id, whole) == 14


@pytest.mark.parametrize("row", range(1, 15))
async def test_an_unreadable_row_at_or_before_the_end_of_a_turn_is_corruption(root: Path, row: int) -> None:
    """Contract 1: damage with a complete scope-closing row after it is corruption."""
    header = new_header()
    path = await stored(root, header, turns=3)

    rewritten(path, lambda rows: rows.__setitem__(row, b"{broken"))

    assert await refusal(root, header.id) == "corrupt"


async def test_an_unreadable_end_of_the_last_turn_is_cut_off(root: Path) -> None:
    """Contract 1: nothing behind the damage says that the turn ever ended."""
    header = new_header()
    path = await stored(root, header)
    rows = path.read_bytes().splitlines(keepends=True)

    rewritten(path, lambda rows: rows.__setitem__(-1, b"{broken"))

    assert await mended(root, header.id, b"".join(rows[:-1])) == 13


@pytest.mark.parametrize("row", range(1, 15))
async def test_a_lost_row_is_corruption(root: Path, row: int) -> None:
    """Spec loop 1.10: a hole at or before the last complete `turn/end` makes the session unloadable."""
    header = new_header()
    path = await stored(root, header, turns=3)

    rewritten(path, lambda rows: rows.pop(row))

    assert await refusal(root, header.id) == "corrupt"


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.pop(-2),
        lambda rows: rows.__setitem__(-1, b'{"seq":13,"time":1,"type":"turn/end","data":{}}'),
    ],
    ids=["a row before it is lost", "its data is lost"],
)
async def test_a_turn_that_says_it_ended_is_never_taken_for_a_cut_off_one(
    root: Path, change: Callable[[list[bytes]], object]
) -> None:
    """Contract 1: a complete scope-closing row was written after everything before it."""
    header = new_header()
    path = await stored(root, header)

    rewritten(path, change)

    assert await refusal(root, header.id) == "corrupt"


TURNS = [*one_turn(1), *one_turn(2, 7), *one_turn(3, 14)]
DAMAGED = SessionHeader("damaged", TIME_MS, "/")
LINES = [orjson.dumps(header_to_json(DAMAGED)), *bytes_of(TURNS)]
WHOLE = b"".join(line + b"\n" for line in LINES)
ENDS = {at for at, fact in enumerate(TURNS) if isinstance(fact, TurnEnd)}


def line_at(offset: int) -> int:
    """The line a byte of WHOLE belongs to; its newline is part of it."""
    return WHOLE.count(b"\n", 0, offset)


@pytest.fixture(scope="module")
def damaged_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("damaged")
    bucket = root / "sessions" / bucket_name(DAMAGED.cwd)
    bucket.mkdir(parents=True)
    return root


async def read_damaged(root: Path, data: bytes) -> list[bytes] | str:
    """The rows load gives of a log with these bytes, or the kind of its error; repaired, it loads again."""
    path = root / "sessions" / bucket_name(DAMAGED.cwd) / f"{DAMAGED.id}.jsonl"
    path.write_bytes(data)
    async with on_disk(root) as store:
        try:
            _, rows = await store.load(DAMAGED.id)
        except StoreError as error:
            assert path.read_bytes() == data
            return error.kind
        await store.repair(DAMAGED.id, closers(rows))
    _, after = await loaded_by(root, DAMAGED.id)
    assert after[-1:] == [] or isinstance(after[-1], TurnEnd)
    assert bytes_of(after)[: len(rows)] == bytes_of(rows)
    return bytes_of(rows)


def read_bytes(data: bytes) -> list[bytes] | str:
    """The same without a disk, quick enough for every byte there is."""
    try:
        _, rows, size = read_log(data, DAMAGED.id)
    except StoreError as error:
        return error.kind
    added = b"".join(row + b"\n" for row in bytes_of(closers(rows)))
    _, after, all_of_it = read_log(data[:size] + added, DAMAGED.id)
    assert all_of_it == size + len(added)
    assert bytes_of(after)[: len(rows)] == bytes_of(rows)
    return bytes_of(rows)


def test_wherever_a_log_is_cut_its_whole_rows_survive() -> None:
    """Issue, tests: truncate at every byte offset; never another error, never a whole turn lost."""
    for cut in range(len(WHOLE)):
        whole_lines = WHOLE.count(b"\n", 0, cut)

        found = read_bytes(WHOLE[:cut])

        assert found == (LINES[1:whole_lines] if whole_lines else "corrupt"), cut


def require_honest(found: list[bytes] | str, first: int, last: int) -> None:
    """With lines `first` to `last` damaged, what is found is all that is whole, or a clear refusal."""
    if isinstance(found, str):
        assert found in {"corrupt", "version"}
        return
    rows = LINES[1:]
    kept = len(found)
    before = max(first - 1, 0)
    assert found[:before] == rows[:before]
    if kept <= before:
        assert first == 0 or kept == before
    lost_ends = {end for end in ENDS if end >= last and end >= kept}
    assert not lost_ends, "a whole turn behind the damage is gone, and nobody says so"


@pytest.mark.parametrize("change", [b"", b"\n", b"\0", b"x", b"7", b'"', b"}", b"\xff"], ids=repr)
def test_wherever_one_byte_is_damaged_the_rest_survives_or_the_error_is_clear(change: bytes) -> None:
    """Issue, tests: corrupt at every byte offset."""
    for offset in range(len(WHOLE)):
        found = read_bytes(WHOLE[:offset] + change + WHOLE[offset + 1 :])

        line = line_at(offset)
        require_honest(found, line, line + 1 if WHOLE[offset : offset + 1] == b"\n" else line)


@given(
    start=st.integers(0, len(WHOLE)), size=st.integers(0, 400), junk=st.binary(max_size=40), cut=st.booleans()
)
@unhurried_in_fixtures
def test_whatever_is_written_over_a_log_the_rest_survives_or_the_error_is_clear(
    damaged_root: Path, start: int, size: int, junk: bytes, cut: bool
) -> None:
    """Issue, tests: longest valid prefix, or a clear error; never an exception of another kind."""
    end = len(WHOLE) if cut else min(start + size, len(WHOLE))

    found = anyio.run(read_damaged, damaged_root, WHOLE[:start] + junk + WHOLE[end:])

    require_honest(found, line_at(start), line_at(end))


@given(junk=st.binary(max_size=200))
@unhurried_in_fixtures
def test_bytes_that_never_were_a_log_are_refused(junk: bytes) -> None:
    """Our promise: reading is total."""
    with pytest.raises(StoreError):
        read_log(junk, "some-id")


async def test_a_fact_of_an_unknown_type_is_another_version(root: Path) -> None:
    """Contract 1: the union is closed; a type that is not in it was written by a newer version."""
    header = new_header()
    path = await stored(root, header)
    row = {"seq": 14, "time": 1, "type": "session/rainbow", "data": {}}

    rewritten(path, lambda rows: rows.append(orjson.dumps(row)))

    assert await refusal(root, header.id) == "version"


@pytest.mark.parametrize("version", [0, 2, "1", None])
async def test_a_header_of_another_version_is_refused(root: Path, version: Any) -> None:
    """Spec loop 1.10: unknown version -> reject."""
    header = new_header()
    path = await stored(root, header)
    row = {"type": "session", "version": version, "id": header.id, "anything": "else"}

    rewritten(path, lambda rows: rows.__setitem__(0, orjson.dumps(row)))

    assert await refusal(root, header.id) == "version"


@pytest.mark.parametrize(
    "change",
    [
        {"type": "something"},
        {"id": "other"},
        {"id": 7},
        {"createdAt": "today"},
        {"cwd": "/elsewhere"},
        {"cwd": "a\0b"},
        {"cwd": 7},
        {"parent": 7},
        {"cwd": None},
    ],
    ids=str,
)
async def test_a_header_that_does_not_fit_its_place_is_corruption(root: Path, change: dict[str, Any]) -> None:
    """Our promise: a log belongs to the id of its file and to the directory of its folder."""
    header = new_header("/")
    path = await stored(root, header)
    row = {"type": "session", "version": 1, "id": header.id, "createdAt": 1, "cwd": "/", **change}

    rewritten(path, lambda rows: rows.__setitem__(0, orjson.dumps(row)))

    assert await refusal(root, header.id) == "corrupt"


@pytest.mark.parametrize("data", [b"", b'{"type":"session"', b"\n", b"[]\n", b"{broken\n"])
async def test_a_log_without_a_header_is_corruption(root: Path, data: bytes) -> None:
    """Our promise: logs appear whole, so a missing header is no crash of ours."""
    header = new_header()
    path = await stored(root, header)
    path.write_bytes(data)

    assert await refusal(root, header.id) == "corrupt"


async def test_only_a_missing_file_is_no_session(root: Path) -> None:
    """Spec loop 1.10: only "file not found" means absent; any other I/O error surfaces."""
    root.mkdir()
    (root / "sessions").write_text("not a folder")

    assert await refusal(root, "some-id") == "io"


async def test_a_folder_in_a_logs_place_is_an_io_error(root: Path) -> None:
    """Spec loop 8.13: an unreadable log is never "no session"."""
    (root / "sessions/_no-cwd/some-id.jsonl").mkdir(parents=True)

    assert await refusal(root, "some-id") == "io"


async def test_foreign_files_among_the_folders_are_passed_over(root: Path) -> None:
    """Spec loop 1.10: foreign files are skipped."""
    header = new_header()
    await stored(root, header, turns=0)
    (root / "sessions/.DS_Store").write_text("whatever a file manager leaves")

    assert await loaded_by(root, header.id) == (header, [])


async def test_a_log_somebody_else_wrote_to_is_left_alone(root: Path) -> None:
    """Our promise: rows never interleave with what else came into the file."""
    header = new_header()
    path = await stored(root, header, turns=1)
    async with on_disk(root) as store:
        await store.load(header.id)
        path.write_bytes(path.read_bytes() + b"from a program that takes no claims\n")
        before = tree_of(root)

        with pytest.raises(StoreError, match="does not end where it was left") as raised:
            await store.append(header.id, one_turn(2, 7), first_seq=7, durable=False)

    assert raised.value.kind == "io"
    assert tree_of(root) == before


async def test_a_log_that_vanished_is_an_io_error(root: Path, store: JsonlStore) -> None:
    """Our promise: an append never makes a log without a header."""
    header = new_header()
    await store.create(header)
    log_path(root).unlink()

    with pytest.raises(StoreError, match="No such file") as raised:
        await store.append(header.id, one_turn(), first_seq=0, durable=True)

    assert raised.value.kind == "io"
    assert not list(root.rglob("*.jsonl"))


async def test_a_failed_sync_takes_the_rows_back(
    root: Path, store: JsonlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Store seam: all of the facts or none of them, also when the disk fails at the last moment."""
    header = new_header()
    await store.create(header)
    before = tree_of(root)

    def failing(fd: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("agent_loop.persistence.files.sync_data", failing)
        with pytest.raises(StoreError, match="Input/output error"):
            await store.append(header.id, one_turn(), first_seq=0, durable=True)

    assert tree_of(root) == before
    await store.append(header.id, one_turn(), first_seq=0, durable=True)


async def test_short_writes_are_carried_on(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """POSIX, write: fewer bytes than asked for may be taken."""
    header = new_header()
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[:100]))

    await stored(root, header, turns=2)
    monkeypatch.undo()

    _, loaded = await loaded_by(root, header.id)
    assert bytes_of(loaded) == bytes_of([*one_turn(1), *one_turn(2, 7)])


async def test_the_disk_learns_the_files_name_before_its_first_durable_rows(
    root: Path, store: JsonlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Store seam: durable means the disk has them; a file without a name is lost all the same."""
    header = new_header("/")
    path = await stored(root, header, turns=0)
    synced: list[str] = []
    fsync, sync_data = os.fsync, os.fdatasync if hasattr(os, "fdatasync") else os.fsync
    inodes = {it.stat().st_ino: it.name for it in (root, *root.rglob("*"))}

    def noted(sync: Callable[[int], None]) -> Callable[[int], None]:
        def noting(fd: int) -> None:
            synced.append(inodes[os.fstat(fd).st_ino])
            sync(fd)

        return noting

    monkeypatch.setattr(os, "fsync", noted(fsync))
    monkeypatch.setattr("agent_loop.persistence.files.sync_data", noted(sync_data))
    await store.load(header.id)

    await store.append(header.id, one_turn(1), first_seq=0, durable=False)
    await store.append(header.id, one_turn(2, 7), first_seq=7, durable=True)
    await store.append(header.id, one_turn(3, 14), first_seq=14, durable=True)

    assert synced == [path.parent.name, "sessions", "state", path.name, path.name]


async def test_the_disk_is_never_waited_for_on_the_event_loop(
    root: Path, store: JsonlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Contract 6: fsync in a worker thread; so is everything else that may block."""
    threads: set[int] = set()
    os_open, listdir, read_bytes = os.open, os.listdir, Path.read_bytes

    def noted(call: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*args: Any, **kwargs: Any) -> Any:
            threads.add(get_ident())
            return call(*args, **kwargs)

        return noting

    monkeypatch.setattr(os, "open", noted(os_open))
    monkeypatch.setattr(os, "listdir", noted(listdir))
    monkeypatch.setattr(Path, "read_bytes", noted(read_bytes))
    header = new_header("/")

    await store.create(header)
    await store.append(header.id, one_turn(), first_seq=0, durable=True)
    await store.load(header.id)

    assert threads
    assert get_ident() not in threads


async def test_a_hundred_thousand_facts_come_back(root: Path) -> None:
    """Our promise: a long session loads; the clock is the benchmark's business."""
    header = new_header()
    start, *_, end = one_turn()
    facts = placed_facts(
        [start, *(AssistantChunk(1, 1, 1, TextDelta(0, str(at))) for at in range(100_000)), end]
    )
    async with on_disk(root) as store:
        await store.create(header)
        await store.append(header.id, facts, first_seq=0, durable=False)

    _, loaded = await loaded_by(root, header.id)

    assert len(loaded) == len(facts)
    assert bytes_of(loaded[-2:]) == bytes_of(facts[-2:])
    assert isinstance(loaded[-1], TurnEnd)


async def test_a_title_lies_beside_its_log_and_only_helps_the_list(root: Path, store: JsonlStore) -> None:
    """Our promise: `<id>.title` next to the log, 0600; without it the list falls back on the first words."""
    header = new_header()
    named = placed_facts([SessionTitle("Named", "user")], 7)
    await store.create(header)
    await store.append(header.id, [*one_turn(), *named], first_seq=0, durable=False)
    kept = log_path(root).with_suffix(".title")
    first = await titles(store)
    mode = stat.S_IMODE(kept.stat().st_mode)

    kept.unlink()

    assert (first, mode) == ({header.id: "Named"}, 0o600)
    assert await titles(store) == {header.id: "hi"}
    assert bytes_of((await store.load(header.id))[1]) == bytes_of([*one_turn(), *named])


async def test_a_title_that_cannot_be_kept_costs_no_fact(
    root: Path, store: JsonlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: what only helps a list never fails a write, and leaves no draft behind."""
    header = new_header()
    named = placed_facts([SessionTitle("Named", "user")])

    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    await store.create(header)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", failing)
        await store.append(header.id, named, first_seq=0, durable=False)

    assert bytes_of((await store.load(header.id))[1]) == bytes_of(named)
    assert [path.name for path in root.rglob("*") if path.is_file()] == [f"{header.id}.jsonl"]


async def test_a_claim_that_fails_for_another_reason_is_an_io_error(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Store seam: `locked` says that another process is at it, so nothing else may say it."""
    header = new_header()
    await stored(root, header)

    def failing(*_: object) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", failing)
    async with on_disk(root) as store:
        with pytest.raises(StoreError, match="No locks available") as raised:
            await store.load(header.id)
        with pytest.raises(NotFound):
            await store.append(header.id, [], first_seq=14, durable=False)

    assert raised.value.kind == "io"


async def test_claims_and_refusals_leave_no_descriptor_open(root: Path) -> None:
    """Our promise: a server that runs for weeks does not run out of descriptors."""
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("only Linux shows a process its open files")
    headers = [new_header() for _ in range(5)]
    async with on_disk(root) as store, on_disk(root) as other:
        await store.create(headers[0])
        before = len(os.listdir("/proc/self/fd"))

        for header in headers[1:]:
            await store.create(header)
            with pytest.raises(StoreError):
                await other.load(header.id)
            with pytest.raises(StoreError):
                await other.delete(header.id)
            await store.load(header.id)
            await store.list_sessions(cwd="/nowhere", cursor=None, limit=1)
            await store.release(header.id)
            await other.delete(header.id)

        assert len(os.listdir("/proc/self/fd")) == before


async def test_a_killed_creator_leaves_no_session(root: Path, store: JsonlStore) -> None:
    """Our promise: a draft is no log; what a crash left of one is in nobody's way."""
    header = new_header()
    await store.create(header)
    (log_path(root).parent / ".draft-0").write_bytes(b'{"type":"session"')
    (log_path(root).parent / "notes.txt").write_text("foreign")

    await store.append(header.id, one_turn(), first_seq=0, durable=False)

    assert await titles(store) == {header.id: "hi"}
