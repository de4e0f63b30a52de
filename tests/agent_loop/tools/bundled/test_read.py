"""read: windows of files, and kind words for what is no text."""

import os
from base64 import b64encode

import pytest

from agent_loop.cards import Card, Location
from agent_loop.messages import Image, Text
from agent_loop.pictures import PICTURE_LIMIT_BYTES
from agent_loop.tools.bundled.read import WINDOW_BYTES, Read
from agent_loop.tools.tool import Effect, ToolRefused
from agent_loop.workspace.roots import OutsideRoots
from tests.doubles.picture import PICTURE
from tests.doubles.workshop import Workshop, said

READ = Read()


async def test_a_small_file_comes_as_it_is(workshop: Workshop) -> None:
    """Our promise: plain text, nothing added, so that it can be written back."""
    workshop.file("a.txt", "one\r\ntwo\x0c\n\n")
    workshop.file("b.txt", "no end")

    outcome = await workshop.run(READ, path="a.txt")

    assert outcome.content == (Text("one\r\ntwo\x0c\n\n"),)
    assert not outcome.is_error
    assert said(await workshop.run(READ, path="b.txt")) == "no end"


async def test_the_card_names_the_place_and_the_effect_the_real_file(workshop: Workshop) -> None:
    """Contracts 2: paths are real; titles relative to the root."""
    file = workshop.file("deep/a.txt")
    (workshop.root / "link").symlink_to("deep/a.txt")

    whole = await workshop.prepare(READ, path="link")
    window = await workshop.prepare(READ, path=str(file), line=7, limit=1)

    assert whole.card == Card("read", "deep/a.txt", (), (Location(str(file)),), {"path": "link"})
    assert window.card.locations == (Location(str(file), 7),)
    assert window.card.input == {"path": str(file), "line": 7, "limit": 1}
    assert whole.effect == window.effect == Effect("read", (str(file),))
    assert READ.parallel_safe(READ.arguments(path="a"))


async def test_a_window_says_what_is_around_it(workshop: Workshop) -> None:
    """Our promise: the model knows that, and how, to go on."""
    workshop.file("a", "".join(f"{n}\n" for n in range(1, 3001)))

    whole, middle, end = [
        said(await workshop.run(READ, path="a", **window))
        for window in ({}, {"line": 5, "limit": 2}, {"line": 2999, "limit": 9})
    ]

    assert whole.startswith("1\n2\n")
    assert whole.endswith("\n2000\n[lines 1 to 2,000 of 3,000; go on with line=2001]")
    assert middle == "5\n6\n[lines 5 to 6 of 3,000; go on with line=7]"
    assert end == "2999\n3000\n"


async def test_a_window_is_bounded_in_bytes_by_whole_lines(workshop: Workshop) -> None:
    """Our promise: 50,000 bytes; a line longer than that is cut, and the model told."""
    workshop.file("lines", ("é" * 10_000 + "\n") * 5)
    workshop.file("line", "é" * 40_000 + "\nend")

    lines, line = said(await workshop.run(READ, path="lines")), said(await workshop.run(READ, path="line"))

    assert lines.endswith("[lines 1 to 2 of 5; go on with line=3]")
    assert len(lines.encode()) < WINDOW_BYTES + 100
    assert line == (
        "é" * 25_000
        + "\n[line 1 has 80,001 bytes; only its first 50,000 are above]"
        + "\n[lines 1 to 1 of 2; go on with line=2]"
    )


@pytest.mark.parametrize(
    ("content", "words", "code"),
    [
        (b"a\0b", "Error: odd is a binary file of 3 bytes, not text.", "BINARY"),
        (b"RIFF\0\0\0\0WAVE", "Error: odd is a binary file of 12 bytes, not text.", "BINARY"),
    ],
)
async def test_what_is_no_text_is_refused_kindly(
    workshop: Workshop, content: bytes, words: str, code: str
) -> None:
    """Our promise."""
    workshop.file("odd", content)

    outcome = await workshop.run(READ, path="odd")

    assert (said(outcome), outcome.error_code, outcome.is_error) == (words, code, True)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PICTURE, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\n\0\0WEBP", "image/webp"),
    ],
)
async def test_a_picture_is_looked_at(workshop: Workshop, content: bytes, kind: str) -> None:
    """Our promise: told by what is in the file; a model that sees none reads a note instead."""
    workshop.file("shot.txt", content)

    outcome = await workshop.run(READ, path="shot.txt")

    assert outcome.content == (
        Text(f"shot.txt: {kind}, {len(content)} bytes"),
        Image(b64encode(content).decode(), kind),
    )


async def test_a_picture_too_big_for_a_model_is_refused(workshop: Workshop) -> None:
    """Our promise: a request that holds it would be refused, now and with every later step."""
    workshop.file("big.png", PICTURE.ljust(PICTURE_LIMIT_BYTES + 1, b"\0"))

    outcome = await workshop.run(READ, path="big.png")

    assert (said(outcome), outcome.error_code) == (
        "Error: big.png is a picture of 3,750,001 bytes; 3,750,000 can be shown to you.",
        "TOO_LARGE",
    )


async def test_text_in_another_coding_is_read_with_a_note(workshop: Workshop) -> None:
    """Our promise: the model learns that writing it back changes the coding."""
    workshop.file("latin", "Grün\n".encode("latin-1"))
    workshop.file("utf16", "Grün".encode("utf-16"))

    latin, utf16 = said(await workshop.run(READ, path="latin")), said(await workshop.run(READ, path="utf16"))

    assert (
        latin == "Grün\n[the file is not UTF-8 and was read as Latin-1; write makes it UTF-8, edit keeps it]"
    )
    assert utf16 == "Grün\n[the file is UTF-16; write makes it UTF-8, edit keeps it]"


async def test_what_cannot_be_read_is_told_with_a_way_out(workshop: Workshop) -> None:
    """Style: a result the model can read and mend."""
    workshop.file("empty")
    workshop.file("short", "1\n2\n")
    with open(workshop.file("big"), "wb") as big:
        big.truncate(10_000_001)

    assert said(await workshop.run(READ, path="empty")) == "(empty file)"
    assert said(await workshop.run(READ, path=".")) == "Error: . is a directory; use list."
    past = await workshop.run(READ, path="short", line=3)
    assert (said(past), past.error_code) == ("Error: short has 2 lines; there is no line 3.", "PAST_END")
    too_large = await workshop.run(READ, path="big")
    assert "10,000,001 bytes, more than 10,000,000. Look into it with run_command" in said(too_large)
    with pytest.raises(FileNotFoundError):
        await workshop.run(READ, path="none")


async def test_no_path_leads_out_of_the_roots(workshop: Workshop) -> None:
    """Contracts 12: outside the roots is refused."""
    (workshop.root / "out").symlink_to("../outside")

    for path in ("../outside/a", "out/a", "/etc/passwd"):
        with pytest.raises(OutsideRoots):
            await workshop.prepare(READ, path=path)

    for path in ("", "a\0b"):
        with pytest.raises(ToolRefused, match="must not be empty or contain NUL"):
            await workshop.prepare(READ, path=path)


async def test_a_link_put_in_the_way_after_the_look_is_noticed(workshop: Workshop) -> None:
    """Contracts 2: what was approved is what runs."""
    file = workshop.file("a/b", "fine")
    prepared = await workshop.prepare(READ, path="a/b")
    file.unlink()
    os.rmdir(file.parent)

    (workshop.root / "a").symlink_to("../outside")
    outside = await READ.run(prepared, workshop.context())
    (workshop.root / "a").unlink()
    (workshop.root / "a").symlink_to("c")
    workshop.file("c/b", "other")
    inside = await READ.run(prepared, workshop.context())

    assert outside == inside
    assert said(inside) == "Error: a/b leads elsewhere since the call was looked at; call again."
    assert inside.error_code == "CHANGED"
