"""write: what is shown is what is written, or nothing is."""

import os
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from agent_loop.cards import Card, CardDiff, CardText, Location
from agent_loop.messages import Text
from agent_loop.tools.bundled.write import DIFF_LIMIT_BYTES, Write
from agent_loop.tools.tool import Effect, ToolContext, ToolRefused
from agent_loop.workspace.local_files import LocalFiles
from agent_loop.workspace.roots import OutsideRoots
from tests.doubles.workshop import Workshop, said

WRITE = Write()


async def test_a_new_file_is_shown_as_new_then_made_with_its_folders(workshop: Workshop) -> None:
    """Contracts 2: prepare may read, never writes."""
    path = workshop.root / "src" / "new.py"

    prepared = await workshop.prepare(WRITE, path="src/new.py", content="é\n")

    assert os.listdir(workshop.root) == []
    assert prepared.card == Card(
        kind="edit",
        title="src/new.py",
        body=(CardDiff(str(path), None, "é\n"),),
        locations=(Location(str(path)),),
        input={"path": "src/new.py", "content": "é\n"},
    )
    assert prepared.effect == Effect("write", (str(path),))
    assert not WRITE.parallel_safe(WRITE.arguments(path="a", content=""))

    outcome = await WRITE.run(prepared, workshop.context())

    assert outcome.content == (Text("Created src/new.py: 3 bytes written."),)
    assert path.read_bytes() == "é\n".encode()


async def test_an_old_file_is_shown_with_its_change_then_replaced(workshop: Workshop) -> None:
    """ACP, tool calls: a diff with old and new text."""
    path = workshop.file("a", "old")
    prepared = await workshop.prepare(WRITE, path="a", content="new!")

    outcome = await WRITE.run(prepared, workshop.context())

    assert prepared.card.body == (CardDiff(str(path), "old", "new!"),)
    assert said(outcome) == "Replaced a: 4 bytes written."
    assert path.read_text() == "new!"


async def test_what_cannot_be_shown_as_a_change_is_described(workshop: Workshop) -> None:
    """Our promise: the person knows what goes, also when it is no text or too much."""
    workshop.file("binary", b"\xff\0")
    workshop.file("big", "x" * DIFF_LIMIT_BYTES)

    binary = await workshop.prepare(WRITE, path="binary", content="new")
    big = await workshop.prepare(WRITE, path="big", content="new")

    assert binary.card.body == (CardText("Replaces 2 bytes that are no text by 3 bytes of text."),)
    assert big.card.body == (CardText("Replaces 1,000,000 bytes by 3; too much to show."),)


async def test_what_cannot_be_written_is_refused_before_anybody_is_asked(workshop: Workshop) -> None:
    """Style: a result the model can read and mend."""
    (workshop.root / "folder").mkdir()
    (workshop.root / "out").symlink_to("../outside")
    with open(workshop.file("big"), "wb") as big:
        big.truncate(10_000_001)

    for path, words in {
        "folder": "folder is a directory; name a file.",
        "new/": "new names a directory; name a file.",
        "big": "Replace it with run_command.",
    }.items():
        with pytest.raises(ToolRefused, match=words):
            await workshop.prepare(WRITE, path=path, content="")

    for path in ("../a", "out/a", "/tmp/a"):
        with pytest.raises(OutsideRoots):
            await workshop.prepare(WRITE, path=path, content="")


@pytest.mark.parametrize("before", ["old", None])
@pytest.mark.parametrize("after", ["changed", "", None, "folder", "huge"])
async def test_a_file_that_changed_since_it_was_shown_is_left_alone(
    workshop: Workshop, before: str | None, after: str | None
) -> None:
    """Contracts 2: run refuses in words when a preimage changed since it was approved."""
    if before == after:
        return
    path = workshop.root / "a"
    if before is not None:
        path.write_text(before)
    prepared = await workshop.prepare(WRITE, path="a", content="new")

    path.unlink(missing_ok=True)
    if after == "folder":
        path.mkdir()
    elif after == "huge":
        with path.open("wb") as huge:
            huge.truncate(10_000_001)
    elif after is not None:
        path.write_text(after)
    outcome = await WRITE.run(prepared, workshop.context())

    assert (outcome.is_error, outcome.error_code) == (True, "CHANGED")
    assert said(outcome).startswith("Error: a changed since the call was looked at, and was not written.")
    assert [entry.name for entry in workshop.root.iterdir()] == (["a"] if after is not None else [])
    if after in ("changed", ""):
        assert path.read_text() == after


async def test_a_link_put_in_the_way_after_the_look_is_not_followed(workshop: Workshop) -> None:
    """Contracts 2 and 12."""
    prepared = await workshop.prepare(WRITE, path="sub/a", content="new")
    (workshop.root / "sub").symlink_to("../outside")

    outcome = await WRITE.run(prepared, workshop.context())

    assert outcome.error_code == "CHANGED"
    assert os.listdir(workshop.root.parent / "outside") == []


class FiresAtTheLastLook(LocalFiles):
    """The person cancels while `run` looks at the file once more."""

    def __init__(self, workshop: Workshop, scope: anyio.CancelScope | None = None) -> None:
        self.workshop = workshop
        self.scope = scope

    async def read(self, path: str, *, limit_bytes: int) -> bytes:
        content = await super().read(path, limit_bytes=limit_bytes)
        self.workshop.turn.fired = self.scope is None
        if self.scope is not None:
            self.scope.cancel()
        return content


def with_files(ctx: ToolContext, files: LocalFiles) -> ToolContext:
    return replace(ctx, workspace=replace(ctx.workspace, files=files))


async def test_a_token_that_fired_right_before_the_write_leaves_the_file_alone(workshop: Workshop) -> None:
    """Contracts 6: ask the token right before every effect."""
    path = workshop.file("a", "old")
    prepared = await workshop.prepare(WRITE, path="a", content="new")

    outcome = await WRITE.run(prepared, with_files(workshop.context(), FiresAtTheLastLook(workshop)))

    assert path.read_text() == "old"
    assert (outcome.outcome, outcome.error_code) == ("interrupted", "CANCELLED")
    assert said(outcome) == "Error: the turn was cancelled; nothing was done"


async def test_a_cancel_right_before_the_write_leaves_the_file_alone(workshop: Workshop) -> None:
    """Contracts 6, for the scope instead of the token."""
    path = workshop.file("a", "old")
    prepared = await workshop.prepare(WRITE, path="a", content="new")

    with anyio.fail_after(5), anyio.CancelScope() as scope:
        await WRITE.run(prepared, with_files(workshop.context(), FiresAtTheLastLook(workshop, scope)))

    assert scope.cancelled_caught
    assert path.read_text() == "old"
    assert sorted(Path(workshop.root).iterdir()) == [path]
