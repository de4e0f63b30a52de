"""list: a directory in lines a model can read."""

import os

import pytest

from agent_loop.cards import Card, Location
from agent_loop.tools.bundled import list_dir
from agent_loop.tools.bundled.list_dir import ListDir
from agent_loop.tools.tool import Effect
from agent_loop.workspace.roots import OutsideRoots
from tests.doubles.workshop import Workshop, said

LIST = ListDir()


async def test_directories_come_first_and_every_kind_is_marked(workshop: Workshop) -> None:
    """Our promise: hidden names included."""
    workshop.file("b.txt", "12345")
    workshop.file(".hidden")
    workshop.file("zoo/a")
    (workshop.root / "link").symlink_to("zoo")
    (workshop.root / "two\nlines").write_text("")
    os.mkfifo(workshop.root / "pipe")

    text = said(await workshop.run(LIST))

    assert text == 'zoo/\n.hidden  0\nb.txt  5\nlink@\npipe?\n"two\\nlines"  0'


async def test_the_card_and_effect_name_the_real_directory(workshop: Workshop) -> None:
    """Contracts 2."""
    (workshop.root / "sub").mkdir()
    (workshop.root / "link").symlink_to("sub")

    here = await workshop.prepare(LIST)
    below = await workshop.prepare(LIST, path="link")

    real = str(workshop.root / "sub")
    assert here.card.title == "."
    assert below.card == Card("read", "sub", (), (Location(real),), {"path": "link"})
    assert below.effect == Effect("read", (real,))
    assert LIST.parallel_safe(LIST.arguments())


async def test_a_long_list_is_cut_and_an_empty_one_named(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: bounded, and the model told."""
    monkeypatch.setattr(list_dir, "ENTRIES_LIMIT", 2)
    (workshop.root / "empty").mkdir()
    for name in "abc":
        workshop.file(f"many/{name}")

    text = said(await workshop.run(LIST, path="many"))

    assert text == "a  0\nb  0\n[2 of 3 entries; list a directory below, or use run_command]"
    assert said(await workshop.run(LIST, path="empty")) == "(empty directory)"


async def test_what_cannot_be_listed_is_told(workshop: Workshop) -> None:
    """Style: a result the model can read and mend."""
    workshop.file("file")
    (workshop.root / "gone").mkdir()
    prepared = await workshop.prepare(LIST, path="gone")
    (workshop.root / "gone").rmdir()
    (workshop.root / "gone").symlink_to("../outside")

    assert said(await workshop.run(LIST, path="file")) == "Error: file is not a directory; use read."
    assert (await LIST.run(prepared, workshop.context())).error_code == "CHANGED"
    with pytest.raises(FileNotFoundError):
        await workshop.run(LIST, path="none")
    with pytest.raises(OutsideRoots):
        await workshop.run(LIST, path="..")
