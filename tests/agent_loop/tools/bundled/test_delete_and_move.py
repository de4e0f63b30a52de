"""delete and move: what is named goes, what it leads to stays, and nothing is overwritten."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent_loop.cards import CardText, Location
from agent_loop.tools.bundled.delete import Delete
from agent_loop.tools.bundled.move import Move
from agent_loop.tools.tool import Effect, Tool, ToolRefused
from agent_loop.workspace import local_files
from agent_loop.workspace.roots import OutsideRoots
from tests.doubles.workshop import Workshop, said

DELETE, MOVE = Delete(), Move()


def tree(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


async def test_a_file_is_shown_then_deleted(workshop: Workshop) -> None:
    """Contracts 2: prepare may read, never writes."""
    path = workshop.file("src/a", "1234")

    prepared = await workshop.prepare(DELETE, path="src/a")

    assert path.exists()
    card = prepared.card
    assert (card.kind, card.title, card.body) == ("delete", "src/a", (CardText("A file of 4 bytes."),))
    assert (card.locations, prepared.effect) == ((Location(str(path)),), Effect("delete", (str(path),)))
    assert not DELETE.parallel_safe(DELETE.arguments(path="a"))

    assert said(await DELETE.run(prepared, workshop.context())) == "Deleted src/a."
    assert tree(workshop.root) == ["src"]


@pytest.mark.parametrize(
    ("files", "words"),
    [([], "A directory without files."), (["x"], "A directory with 1 file, 2 bytes in all.")],
)
async def test_a_directory_goes_with_all_below_it(workshop: Workshop, files: list[str], words: str) -> None:
    """Our promise: the person reads how much goes."""
    (workshop.root / "folder/below").mkdir(parents=True)
    for name in files:
        workshop.file(f"folder/below/{name}", "22")

    prepared = await workshop.prepare(DELETE, path="folder/")
    await DELETE.run(prepared, workshop.context())

    assert prepared.card.body == (CardText(words),)
    assert tree(workshop.root) == []


async def test_a_link_goes_and_what_it_leads_to_stays(workshop: Workshop, tmp_path: Path) -> None:
    """Contracts 12: a link out of the roots may be taken away; nothing behind it is touched."""
    kept = tmp_path / "elsewhere"
    kept.write_text("mine")
    (workshop.root / "link").symlink_to(kept)
    (workshop.root / "other").symlink_to(kept)

    assert said(await workshop.run(DELETE, path="link")) == "Deleted link."
    assert said(await workshop.run(MOVE, source="other", target="moved")) == "Moved other → moved."

    assert kept.read_text() == "mine"
    assert (workshop.root / "moved").is_symlink()
    assert tree(workshop.root) == ["moved"]


async def test_a_move_makes_the_folders_on_its_way(workshop: Workshop) -> None:
    """Contracts 2: card first; both ends are named."""
    source, target = workshop.file("a", "12"), workshop.root / "new/place/b"

    prepared = await workshop.prepare(MOVE, source="a", target="new/place/b")

    assert tree(workshop.root) == ["a"]
    assert (prepared.card.kind, prepared.card.title) == ("move", "a → new/place/b")
    assert prepared.card.locations == (Location(str(source)), Location(str(target)))
    assert prepared.effect == Effect("move", (str(source), str(target)))
    assert not MOVE.parallel_safe(MOVE.arguments(source="a", target="b"))
    assert said(await MOVE.run(prepared, workshop.context())) == "Moved a → new/place/b."
    assert target.read_text() == "12"


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        (DELETE, {"path": "missing"}, "NOT_FOUND"),
        (DELETE, {"path": "."}, "INVALID_ARGS"),
        (DELETE, {"path": "folder/.."}, "INVALID_ARGS"),
        (DELETE, {"path": ""}, "INVALID_ARGS"),
        (MOVE, {"source": "missing", "target": "b"}, "NOT_FOUND"),
        (MOVE, {"source": "a", "target": "folder"}, "EXISTS"),
        (MOVE, {"source": "a", "target": "a/b"}, "INVALID_ARGS"),
        (MOVE, {"source": "folder", "target": "a/b"}, "INVALID_ARGS"),
        (MOVE, {"source": "folder", "target": "folder"}, "INVALID_ARGS"),
        (MOVE, {"source": "folder", "target": "folder/below/deeper"}, "INVALID_ARGS"),
    ],
)
async def test_what_makes_no_sense_is_refused_before_anybody_is_asked(
    workshop: Workshop, tool: Tool[Any], arguments: dict[str, str], code: str
) -> None:
    """Quality bar: the model's fault is a result it can mend."""
    workshop.file("a")
    workshop.file("folder/below/x")
    before = tree(workshop.root)

    with pytest.raises(ToolRefused) as refused:
        await workshop.prepare(tool, **arguments)

    assert (refused.value.code, tree(workshop.root)) == (code, before)


@pytest.mark.parametrize("path", ["../outside", "/etc/hosts", "out/x", "up/x"])
async def test_nothing_outside_the_roots_is_deleted_or_moved(
    workshop: Workshop, tmp_path: Path, path: str
) -> None:
    """Contracts 12: by real path, both ends."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far/x").write_text("kept")
    (workshop.root / "out").symlink_to(tmp_path / "far")
    (workshop.root / "up").symlink_to("..")
    workshop.file("a")

    for tool, arguments in (
        (DELETE, {"path": path}),
        (MOVE, {"source": path, "target": "b"}),
        (MOVE, {"source": "a", "target": path}),
    ):
        with pytest.raises(OutsideRoots):
            await workshop.prepare(tool, **arguments)
    assert (tmp_path / "far/x").read_text() == "kept"


@pytest.mark.parametrize("tool", [DELETE, MOVE], ids=["delete", "move"])
async def test_what_changed_after_it_was_approved_is_left_alone(workshop: Workshop, tool: Tool[Any]) -> None:
    """Contracts 2: what was approved is what runs, for whole directories too."""
    arguments = {"path": "folder"} if tool is DELETE else {"source": "folder", "target": "b"}
    workshop.file("folder/a", "1")
    prepared = await workshop.prepare(tool, **arguments)
    workshop.file("folder/below/new", "2")

    outcome = await tool.run(prepared, workshop.context())

    assert (outcome.is_error, outcome.error_code) == (True, "CHANGED")
    assert tree(workshop.root) == ["folder", "folder/a", "folder/below", "folder/below/new"]


@pytest.mark.parametrize("tool", [DELETE, MOVE], ids=["delete", "move"])
async def test_what_is_gone_or_cancelled_is_not_done(workshop: Workshop, tool: Tool[Any]) -> None:
    """Contracts 6: the token is asked right before every effect."""
    arguments = {"path": "a"} if tool is DELETE else {"source": "a", "target": "b"}
    path = workshop.file("a", "1")
    prepared = await workshop.prepare(tool, **arguments)

    workshop.turn.fired = True
    assert (await tool.run(prepared, workshop.context())).outcome == "interrupted"
    assert path.exists()
    path.unlink()
    assert (await tool.run(prepared, workshop.context())).error_code == "CHANGED"


async def test_a_target_that_appears_meanwhile_is_not_overwritten(workshop: Workshop) -> None:
    """Our promise: nothing is ever overwritten."""
    workshop.file("a", "1")
    prepared = await workshop.prepare(MOVE, source="a", target="b")
    workshop.file("b", "2")

    outcome = await MOVE.run(prepared, workshop.context())

    assert outcome.error_code == "EXISTS"
    assert (workshop.root / "b").read_text() == "2"


@pytest.mark.parametrize("tool", [DELETE, MOVE], ids=["delete", "move"])
async def test_a_folder_that_leads_elsewhere_by_now_is_not_followed(
    workshop: Workshop, tmp_path: Path, tool: Tool[Any]
) -> None:
    """Contracts 12: roots hold when the call runs, not only when it was looked at."""
    arguments = {"path": "folder/a"} if tool is DELETE else {"source": "b", "target": "folder/c"}
    workshop.file("folder/a", "1")
    workshop.file("b")
    prepared = await workshop.prepare(tool, **arguments)
    (tmp_path / "far").mkdir()
    os.rename(workshop.root / "folder/a", tmp_path / "far/a")
    (workshop.root / "folder").rmdir()
    (workshop.root / "folder").symlink_to(tmp_path / "far")

    outcome = await tool.run(prepared, workshop.context())

    assert (outcome.is_error, os.listdir(tmp_path / "far")) == (True, ["a"])


async def test_a_directory_too_big_to_vouch_for_is_refused(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: what cannot be checked again is not approved."""
    monkeypatch.setattr(local_files, "SURVEY_LIMIT", 2)
    workshop.file("folder/a")
    workshop.file("folder/b")

    with pytest.raises(ToolRefused, match="holds too much for one call"):
        await workshop.prepare(DELETE, path="folder")
