"""edit: what is approved is what is written, to a file that was read."""

from pathlib import Path

import pytest

from agent_loop.cards import CardDiff, CardText, Location
from agent_loop.messages import text_of
from agent_loop.tools.bundled import edit as edit_module
from agent_loop.tools.bundled.edit import EditFile
from agent_loop.tools.bundled.read import Read
from agent_loop.tools.bundled.write import Write
from agent_loop.tools.tool import Effect, Prepared, ToolContext, ToolRefused
from agent_loop.workspace.roots import OutsideRoots
from tests.doubles.workshop import Workshop, said

EDIT, READ, WRITE = EditFile(), Read(), Write()


class Desk:
    """One session: what is read stays known."""

    def __init__(self, workshop: Workshop) -> None:
        self.ctx: ToolContext = workshop.context()

    async def read(self, path: str) -> str:
        return text_of(
            (await READ.run(await READ.prepare(READ.arguments(path=path), self.ctx), self.ctx)).content
        )

    async def prepare(self, path: str, *edits: tuple[str, str], every: bool = False) -> Prepared:
        wanted = [{"old": old, "new": new, "replace_all": every} for old, new in edits]
        return await EDIT.prepare(EDIT.arguments.model_validate({"path": path, "edits": wanted}), self.ctx)

    async def edit(self, path: str, *edits: tuple[str, str]) -> str:
        return said(await EDIT.run(await self.prepare(path, *edits), self.ctx))


@pytest.fixture
def desk(workshop: Workshop) -> Desk:
    return Desk(workshop)


async def test_a_change_is_shown_then_made(workshop: Workshop, desk: Desk) -> None:
    """Contracts 2: prepare may read, never writes; one diff per file, and the line."""
    path = workshop.file("src/a.py", "one\ntwo\nthree\n")
    await desk.read("src/a.py")

    prepared = await desk.prepare("src/a.py", ("two", "2"))

    assert path.read_text() == "one\ntwo\nthree\n"
    assert prepared.card.kind == "edit"
    assert prepared.card.title == "src/a.py"
    assert prepared.card.body == (CardDiff(str(path), "one\ntwo\nthree\n", "one\n2\nthree\n"),)
    assert prepared.card.locations == (Location(str(path), 2),)
    assert prepared.effect == Effect("write", (str(path),))
    assert not EDIT.parallel_safe(
        EDIT.arguments.model_validate({"path": "a", "edits": [{"old": "a", "new": ""}]})
    )

    assert said(await EDIT.run(prepared, desk.ctx)) == "Changed src/a.py in 1 place, from line 2 on."
    assert path.read_text() == "one\n2\nthree\n"


async def test_what_was_never_read_is_not_edited(workshop: Workshop, desk: Desk) -> None:
    """Issue, edit: the guard; a model that has not looked is guessing."""
    workshop.file("a", "x")

    with pytest.raises(ToolRefused, match="a was not read in this session; read it first") as refused:
        await desk.prepare("a", ("x", "y"))

    assert refused.value.code == "NOT_READ"


async def test_what_changed_since_it_was_read_is_read_again(workshop: Workshop, desk: Desk) -> None:
    """Issue, edit: a stale picture of a file is no ground to change it on."""
    path = workshop.file("a", "x")
    await desk.read("a")
    path.write_text("x and more")

    with pytest.raises(ToolRefused, match="changed since it was read") as refused:
        await desk.prepare("a", ("x", "y"))
    await desk.read("a")

    assert refused.value.code == "CHANGED"
    assert await desk.edit("a", ("x", "y")) == "Changed a in 1 place, from line 1 on."


async def test_a_file_may_be_changed_again_and_again_once_it_is_known(workshop: Workshop, desk: Desk) -> None:
    """Our promise: what we wrote ourselves, by edit or write, we have seen."""
    written = await WRITE.prepare(WRITE.arguments(path="a", content="1\n"), desk.ctx)
    await WRITE.run(written, desk.ctx)

    await desk.edit("a", ("1", "2"))
    await desk.edit("a", ("2", "3"))

    assert (workshop.root / "a").read_text() == "3\n"


@pytest.mark.parametrize("change", ["other", None])
async def test_a_file_that_changed_after_it_was_approved_is_not_written(
    workshop: Workshop, desk: Desk, change: str | None
) -> None:
    """Contracts 2: what was approved is what runs."""
    path = workshop.file("a", "x")
    await desk.read("a")
    prepared = await desk.prepare("a", ("x", "y"))
    if change is None:
        path.unlink()
    else:
        path.write_text(change)

    outcome = await EDIT.run(prepared, desk.ctx)

    assert outcome.is_error
    assert (outcome.error_code, "was not written" in said(outcome)) == ("CHANGED", True)
    assert path.exists() == (change is not None)


async def test_a_link_put_in_the_way_is_not_followed(workshop: Workshop, desk: Desk, tmp_path: Path) -> None:
    """Contracts 12: roots hold when the call runs, not only when it was looked at."""
    path = workshop.file("a", "x")
    await desk.read("a")
    prepared = await desk.prepare("a", ("x", "y"))
    outside = tmp_path / "elsewhere"
    outside.write_text("x")
    path.unlink()
    path.symlink_to(outside)

    outcome = await EDIT.run(prepared, desk.ctx)

    assert (outcome.is_error, outside.read_text()) == (True, "x")


async def test_a_cancel_before_the_write_changes_nothing(workshop: Workshop, desk: Desk) -> None:
    """Contracts 6: the token is asked right before every effect."""
    path = workshop.file("a", "x")
    await desk.read("a")
    prepared = await desk.prepare("a", ("x", "y"))
    workshop.turn.fired = True

    outcome = await EDIT.run(prepared, desk.ctx)

    assert (outcome.outcome, path.read_text()) == ("interrupted", "x")


@pytest.mark.parametrize(
    ("path", "code"), [("missing", "NOT_FOUND"), ("folder", "IS_DIRECTORY"), ("big", "TOO_LARGE")]
)
async def test_what_cannot_be_edited_is_refused_with_a_way_out(
    workshop: Workshop, desk: Desk, monkeypatch: pytest.MonkeyPatch, path: str, code: str
) -> None:
    """Quality bar: the model's fault is a result it can mend."""
    (workshop.root / "folder").mkdir()
    workshop.file("big", "x" * 100)
    monkeypatch.setattr(edit_module, "FILE_LIMIT_BYTES", 99)

    with pytest.raises(ToolRefused) as refused:
        await desk.prepare(path, ("x", "y"))

    assert refused.value.code == code


async def test_nothing_outside_the_roots_is_edited(desk: Desk) -> None:
    """Contracts 12."""
    with pytest.raises(OutsideRoots):
        await desk.prepare("/etc/hosts", ("a", "b"))


async def test_a_misfit_is_refused_with_the_files_name(workshop: Workshop, desk: Desk) -> None:
    """Issue, edit: explained so that the model can mend it."""
    workshop.file("a", "x\nx\n")
    await desk.read("a")

    with pytest.raises(ToolRefused, match=r"^a: `old` is there 2 times, at lines 1, 2") as refused:
        await desk.prepare("a", ("x", "y"))
    every = await desk.prepare("a", ("x", "y"), every=True)

    assert refused.value.code == "AMBIGUOUS"
    assert said(await EDIT.run(every, desk.ctx)) == "Changed a in 2 places, from line 1 on."


async def test_a_big_file_is_shown_by_the_lines_around_its_change(workshop: Workshop, desk: Desk) -> None:
    """Cards: what a person approves must be readable, and fit an editor."""
    lines = [f"line {at}\n" for at in range(5_000)]
    workshop.file("a", "".join(lines))
    await desk.read("a")

    [shown] = (await desk.prepare("a", ("line 2500\n", "new\n"))).card.body
    [far] = (await desk.prepare("a", ("line 1\n", "new\n"), ("line 4999\n", "new\n"))).card.body

    assert isinstance(shown, CardDiff)
    assert shown.old == "".join(lines[2497:2504])
    assert shown.new == "".join([*lines[2497:2500], "new\n", *lines[2501:2504]])
    assert far == CardText("Changes 2 places, from line 2 on; too much to show.")


async def test_utf16_stays_utf16(workshop: Workshop, desk: Desk) -> None:
    """Issue, edit: only the touched lines change, whatever the encoding."""
    path = workshop.file("a", "Grün\r\nblau\r\n".encode("utf-16"))
    await desk.read("a")

    await desk.edit("a", ("Grün", "Weiß"))

    assert path.read_bytes() == "Weiß\r\nblau\r\n".encode("utf-16")


async def test_what_only_says_it_is_utf16_is_refused(workshop: Workshop, desk: Desk) -> None:
    """Our promise: never guess at bytes."""
    workshop.file("a", b"\xff\xfea")
    await desk.read("a")

    with pytest.raises(ToolRefused, match="says it is UTF-16 and is not"):
        await desk.prepare("a", ("a", "b"))


async def test_a_binary_file_too_big_to_read_may_be_edited_by_its_exact_bytes(
    workshop: Workshop, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: read's own limit does not make a file untouchable."""
    monkeypatch.setattr(edit_module, "READABLE_BYTES", 3)
    path = workshop.file("a", b"\0\xffversion=1\n")

    prepared = await desk.prepare("a", ("version=1", "version=2"))
    await EDIT.run(prepared, desk.ctx)

    assert prepared.card.body == (CardText("Changes 1 places, from line 1 on, of a file that is no text."),)
    assert path.read_bytes() == b"\0\xffversion=2\n"


async def test_latin1_is_shown_as_it_reads(workshop: Workshop, desk: Desk) -> None:
    """Cards: the same letters as read showed."""
    path = workshop.file("a", "Grün\n".encode("latin-1"))
    await desk.read("a")

    assert (await desk.prepare("a", ("Grün", "Weiß"))).card.body == (CardDiff(str(path), "Grün\n", "Weiß\n"),)
