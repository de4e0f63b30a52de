"""Files behind an editor: unsaved buffers are seen, and bytes survive whatever the editor thinks of them."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import anyio
import pytest

from acp_server.editor import files as editor_files
from acp_server.editor.files import CARRIED_BYTES, CHANGED, UNSAVED, EditorFiles
from agent_loop import FileTooLarge, Roots
from agent_loop.record import replace
from agent_loop.tools.bundled.edit import EditFile
from agent_loop.tools.bundled.read import Read
from agent_loop.tools.bundled.write import Write
from agent_loop.tools.tool import ToolContext
from agent_loop.workspace.local_files import LocalFiles
from tests.doubles.picture import PICTURE
from tests.doubles.services import SILENT, Buffers, Refusal, Services
from tests.doubles.workshop import Workshop, said

LIMIT = 1_000_000
WAIT_S = 5.0

SAVES: dict[str, Callable[[str], bytes] | None] = {
    "exactly": str.encode,
    "with-lf": lambda text: text.replace("\r\n", "\n").encode(),
    "with-crlf": lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n").encode(),
    "with-a-last-end": lambda text: (text.removesuffix("\n") + "\n").encode(),
    "with-a-mark": lambda text: b"\xef\xbb\xbf" + text.removeprefix("\ufeff").encode(),
}
ENDS = {"lf": "\n", "crlf": "\r\n", "mixed": None}


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    root = tmp_path / "project"
    root.mkdir()
    return Workshop(root)


def behind(services: Services, root: Path, *, reads: bool = True, writes: bool = True) -> EditorFiles:
    return EditorFiles(services.calls, "s1", Roots(str(root)), LocalFiles(), reads=reads, writes=writes)


def with_editor(workshop: Workshop, buffers: Buffers) -> ToolContext:
    ctx = workshop.context()
    files = behind(buffers.services, workshop.root)
    return replace(ctx, workspace=replace(ctx.workspace, files=files))


def contents() -> Iterator[tuple[str, bytes]]:
    """Files by line end, mark, coding and last end; each has a line `two` to change."""
    for ends, mark, coding, last in product(ENDS, (False, True), ("utf-8", "latin-1"), (True, False)):
        end = ENDS[ends]
        text = "öne\r\ntwo\nthree" if end is None else end.join(("öne", "two", "three"))
        text += (end or "\n") if last else ""
        content = (b"\xef\xbb\xbf" if mark else b"") + text.encode(coding)
        name = f"{ends}-{'mark' if mark else 'plain'}-{coding}-{'ended' if last else 'open'}"
        yield name, content


CONTENTS = dict(contents())


@pytest.mark.parametrize("saves", SAVES)
@pytest.mark.parametrize("name", CONTENTS)
async def test_an_edit_changes_its_line_and_no_other_byte(name: str, saves: str, workshop: Workshop) -> None:
    """Issue "Acting with consent": endings × BOM × coding × final newline, through an editor of any habit."""
    content = CONTENTS[name]
    path = workshop.file("a.txt", content)
    ctx = with_editor(workshop, Buffers(SAVES[saves]))
    read, edit = Read(), EditFile()
    await read.run(await read.prepare(read.arguments(path="a.txt"), ctx), ctx)

    arguments = edit.arguments.model_validate({"path": "a.txt", "edits": [{"old": "two", "new": "2"}]})
    outcome = await edit.run(await edit.prepare(arguments, ctx), ctx)

    assert not outcome.is_error, said(outcome)
    assert path.read_bytes() == content.replace(b"two", b"2")


@pytest.mark.parametrize("saves", SAVES)
@pytest.mark.parametrize("text", ["a\n", "a\r\nb\r\n", "a\r\nb\n", "\ufeffa\n", "no end", ""])
async def test_a_write_leaves_the_bytes_that_were_allowed(text: str, saves: str, workshop: Workshop) -> None:
    """Our promise: approved is executed, to the byte, whatever the editor does when it saves."""
    buffers = Buffers(SAVES[saves])
    ctx = with_editor(workshop, buffers)
    write = Write()
    prepared = await write.prepare(write.arguments(path="new/a.txt", content=text), ctx)

    outcome = await write.run(prepared, ctx)

    assert (workshop.root / "new" / "a.txt").read_bytes() == text.encode()
    assert said(outcome) == f"Created new/a.txt: {len(text.encode()):,} bytes written."
    assert "fs/write_text_file" in buffers.services.methods


async def test_an_unsaved_buffer_is_what_a_file_holds(tmp_path: Path) -> None:
    """ACP, file system: unsaved buffers are seen. Scenario B01's half of the client's files."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    buffers = Buffers()
    files = behind(buffers.services, tmp_path)

    assert await files.read(str(path), limit_bytes=LIMIT) == path.read_bytes()
    buffers.unsaved[str(path)] = "one\ntwo\nthree\n"

    assert await files.read(str(path), limit_bytes=LIMIT) == b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n"
    with pytest.raises(FileTooLarge):
        await files.read(str(path), limit_bytes=18)


async def test_line_ends_of_several_kinds_are_left_to_the_buffer(tmp_path: Path) -> None:
    """Our promise: nothing is made up."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\ntwo\n")
    buffers = Buffers()
    buffers.unsaved[str(path)] = "one\r\ntwo\nthree\n"

    assert await behind(buffers.services, tmp_path).read(str(path), limit_bytes=LIMIT) == (
        b"one\r\ntwo\nthree\n"
    )


async def test_a_buffer_that_was_never_saved_is_there(tmp_path: Path) -> None:
    """ACP, file system: an editor may know more than the disk."""
    buffers = Buffers()
    buffers.unsaved[str(tmp_path / "new.txt")] = "half a\ud83d"
    files = behind(buffers.services, tmp_path)

    assert await files.read(str(tmp_path / "new.txt"), limit_bytes=LIMIT) == b"half a?"
    with pytest.raises(FileNotFoundError):
        await files.read(str(tmp_path / "none.txt"), limit_bytes=LIMIT)


@pytest.mark.parametrize("content", [PICTURE, "Grün".encode("latin-1"), b"a\0b", b"x" * (CARRIED_BYTES + 1)])
async def test_what_a_buffer_cannot_hold_stays_with_the_disk(content: bytes, tmp_path: Path) -> None:
    """Our promise: files survive byte for byte; the editor is not even asked."""
    path = tmp_path / "a"
    path.write_bytes(content)
    buffers = Buffers()
    files = behind(buffers.services, tmp_path)

    assert await files.read(str(path), limit_bytes=2 * CARRIED_BYTES) == content
    assert await files.write(str(path), content + b"\0") == ""

    assert path.read_bytes() == content + b"\0"
    assert buffers.services.asked == []


async def test_a_file_the_editor_does_not_know_is_the_disks(tmp_path: Path) -> None:
    """ACP, file system: -32002 for a missing one; it may lie outside the editor's project."""
    path = tmp_path / "a.txt"
    path.write_text("on disk")

    def unknown(_: object) -> None:
        raise Refusal(-32002, "Resource not found")

    assert await behind(Services(fs__read_text_file=unknown), tmp_path).read(
        str(path), limit_bytes=LIMIT
    ) == (b"on disk")


async def test_an_editor_that_only_writes_is_only_written_to(tmp_path: Path) -> None:
    """ACP, initialization: each capability by itself; what is not offered is not used."""
    path = tmp_path / "a.txt"
    path.write_text("old")
    buffers = Buffers()
    buffers.unsaved[str(path)] = "unsaved"

    files = behind(buffers.services, tmp_path, reads=False)
    assert await files.read(str(path), limit_bytes=LIMIT) == b"old"
    assert await files.write(str(path), b"new") == ""
    assert buffers.services.methods == ["fs/write_text_file"]

    reader = behind(buffers.services, tmp_path, writes=False)
    assert await reader.write(str(path), b"newer") == ""
    assert buffers.services.methods == ["fs/write_text_file"]
    assert path.read_text() == "newer"


@pytest.mark.parametrize(
    ("saves", "reads", "note"),
    [
        (None, True, UNSAVED),
        (None, False, CHANGED),
        (lambda text: text.upper().encode(), True, CHANGED),
        (lambda text: text.upper().encode("utf-16"), False, CHANGED),
    ],
)
async def test_the_model_is_told_what_else_became_of_a_file(
    saves: Callable[[str], bytes] | None, reads: bool, note: str, tmp_path: Path
) -> None:
    """Our promise: what the editor did to it stays, and is no secret."""
    path = tmp_path / "a.txt"
    path.write_text("old")
    buffers = Buffers(saves)

    assert await behind(buffers.services, tmp_path, reads=reads).write(str(path), b"new") == note


async def test_a_new_file_that_is_not_saved_is_said_to_be_that(workshop: Workshop) -> None:
    """The same, as the model reads it."""
    ctx, write = with_editor(workshop, Buffers(None)), Write()

    outcome = await write.run(await write.prepare(write.arguments(path="a.txt", content="a"), ctx), ctx)

    assert said(outcome) == f"Created a.txt: 1 bytes written. {UNSAVED}"


async def test_the_editor_is_asked_by_the_names_it_knows(tmp_path: Path) -> None:
    """Our promise: a project opened through a link has that name in every buffer of the editor."""
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    buffers = Buffers()

    await behind(buffers.services, tmp_path / "link").write(str(real / "a.txt"), b"a")

    [(_, params), *_] = buffers.services.asked
    assert params == {"sessionId": "s1", "path": f"{tmp_path}/link/a.txt", "content": "a"}


async def test_what_goes_wrong_in_the_editor_is_the_calls_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue "Acting with consent": a client failure shows in the card and the turn goes on."""

    def refuses(_: object) -> None:
        raise Refusal(-32603, "the disk\nis on fire " + "x" * 900)

    path = str(tmp_path / "a.txt")
    Path(path).write_text("a")
    files = behind(Services(fs__read_text_file=refuses, fs__write_text_file=SILENT), tmp_path)

    with pytest.raises(
        OSError, match="the editor answered fs/read_text_file with: the disk is on fire"
    ) as it:
        await files.read(path, limit_bytes=LIMIT)
    assert len(str(it.value)) < 400
    monkeypatch.setattr(editor_files, "ANSWER_S", 0.01)
    with pytest.raises(OSError, match=r"did not answer fs/write_text_file within 0\.01 s"):
        await files.write(path, b"b")
    assert Path(path).read_text() == "a"


async def test_a_file_nobody_has_is_missing_whatever_the_editor_calls_that(workshop: Workshop) -> None:
    """Seen with real clients: "Internal error" for a file that is to be created."""

    def refuses(_: object) -> None:
        raise Refusal(-32603, "ENOENT: no such file or directory")

    buffers = Buffers()
    buffers.services.answers["fs/read_text_file"] = refuses
    ctx, write = with_editor(workshop, buffers), Write()

    outcome = await write.run(await write.prepare(write.arguments(path="a.txt", content="a"), ctx), ctx)

    assert said(outcome) == "Created a.txt: 1 bytes written."
    buffers.saves = lambda text: b"something else"
    assert await ctx.workspace.files.write(str(workshop.root / "b.txt"), b"b") == CHANGED


async def test_an_editor_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    """Our promise: in words, and no hang."""
    services = Services()
    services.calls.close()
    (tmp_path / "a").write_text("a")

    with pytest.raises(OSError, match="the editor is gone"):
        await behind(services, tmp_path).read(str(tmp_path / "a"), limit_bytes=LIMIT)


async def test_a_cancel_does_not_wait_for_an_answer(tmp_path: Path) -> None:
    """Our promise: Stop is trusted; the editor is told that nobody waits any more."""
    services = Services(fs__read_text_file=SILENT)
    (tmp_path / "a").write_text("a")

    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: behind(services, tmp_path).read(str(tmp_path / "a"), limit_bytes=LIMIT))
            while not services.asked:
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    assert services.methods == ["fs/read_text_file", "$/cancel_request"]


async def test_everything_but_text_is_the_disks(tmp_path: Path) -> None:
    """ACP, file system: there is no more to it than reading and writing."""
    buffers = Buffers()
    files = behind(buffers.services, tmp_path)
    (tmp_path / "a").write_text("a")

    await files.move(str(tmp_path / "a"), str(tmp_path / "b"))
    assert [entry.name for entry in await files.entries(str(tmp_path))] == ["b"]
    assert (await files.survey(str(tmp_path / "b"))).files == 1
    await files.delete(str(tmp_path / "b"))

    assert list(tmp_path.iterdir()) == []
    assert buffers.services.asked == []


async def test_what_a_buffer_holds_is_what_the_file_holds(tmp_path: Path) -> None:
    """Contracts 2: a change between the question and the yes is seen, saved or not."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\n")
    buffers = Buffers()
    files = behind(buffers.services, tmp_path)

    assert await files.holds(str(path), b"one\r\n")
    buffers.unsaved[str(path)] = "two\n"
    assert not await files.holds(str(path), b"one\r\n")
    assert await files.holds(str(path), b"two\r\n")
    buffers.unsaved[str(path)] = "x" * (CARRIED_BYTES + 1)
    assert not await files.holds(str(path), b"one\r\n")
    assert await behind(buffers.services, tmp_path, reads=False).holds(str(path), b"one\r\n")
