"""BoundedOutput and plain_text: what is shown of what a command printed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.workspace.output import BoundedOutput, Seen, bounded_text, plain_text


@pytest.mark.parametrize(
    ("raw", "plain"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPstring\x1b\\text", "text"),
        ("\x1b(Btext\x1bM", "text"),
        ("\x9b31mred", "red"),
        ("10%\r20%\r\nend\r\r\n", "10%\n20%\nend\n"),
        ("N\x08NA\x08A_\x08x", "NAx"),
        ("\x08a\x00b\x07\x7f\x0c\x85c\td\n", "abc\td\n"),
        ("cut \x1b[31", "cut "),
        ("cut \x1b]0;tit", "cut "),
        ("cut \x1b", "cut "),
        ("\x1b]unended\nnext", "unended\nnext"),
        ("ünï 🎉", "ünï 🎉"),
    ],
)
def test_control_sequences_are_taken_out_and_text_stays(raw: str, plain: str) -> None:
    """The CommandRunner seam: output has its control sequences taken out."""
    assert plain_text(raw) == plain


@given(st.text(st.sampled_from("\x1b[]P;m0\x07\\\x08\r\na\x9b\x00")))
def test_nothing_that_steers_a_terminal_is_left(raw: str) -> None:
    """Our promise: a command must not repaint the editor's log."""
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", plain_text(raw)) is None


@given(st.lists(st.binary(max_size=40)), st.integers(0, 60))
def test_the_bound_holds_and_what_is_missing_is_counted(parts: list[bytes], limit: int) -> None:
    """The CommandRunner seam: half from the head, half from the tail."""
    output = BoundedOutput(limit)

    for part in parts:
        output.feed(part)

    whole = b"".join(parts)
    text, omitted = output.seen(final=True)
    shown = re.sub(r"\n\[… [\d,]+ bytes left out …\]\n", "", text)
    assert output.total_bytes == len(whole)
    assert len(shown.encode()) <= limit
    assert (omitted > 0) == (shown != text)
    assert len(output.kept()) <= limit + 40
    if output.fits():
        assert output.kept() == whole
    if omitted == 0:
        assert text == plain_text(whole.decode(errors="replace"))


def test_the_hole_is_cut_at_the_ends_of_lines() -> None:
    """Our promise: half a line, a character or a control sequence reads badly."""
    output = BoundedOutput(40)

    for number in range(100):
        output.feed(b"line %d\n" % number)

    assert output.seen(final=True) == Seen(
        "line 0\nline 1\n\n[… 760 bytes left out …]\nline 98\nline 99\n", 760
    )


def test_without_line_ends_no_character_is_cut() -> None:
    """Our promise: no replacement character where the command printed none."""
    output = BoundedOutput(9)

    output.feed("é".encode() * 50)

    assert output.seen(final=True) == Seen("éé\n[… 92 bytes left out …]\néé", 92)


def test_a_character_that_has_not_arrived_whole_waits() -> None:
    """The CommandRunner seam: live output, decoded as it comes."""
    output = BoundedOutput(100)
    output.feed("é".encode()[:1])

    assert output.seen(final=False) == Seen("", 0)
    assert output.seen(final=True) == Seen("\N{REPLACEMENT CHARACTER}", 0)

    output.feed("é".encode()[1:])
    assert output.seen(final=False) == Seen("é", 0)


def test_bytes_that_grow_as_text_are_bounded_as_text() -> None:
    """Our promise: a bound is a bound, also for binary output."""
    output = BoundedOutput(30)

    output.feed(b"\xff" * 30)

    assert output.fits()
    assert output.seen(final=True) == Seen("�" * 5 + "\n[… 60 bytes left out …]\n" + "�" * 5, 60)


def test_a_text_within_its_bound_is_left_alone() -> None:
    """Our promise."""
    assert bounded_text("éa", 3) == Seen("éa", 0)
    assert bounded_text("abcdef", 4) == Seen("ab\n[… 2 bytes left out …]\nef", 2)
    assert bounded_text("ab", 0) == Seen("\n[… 2 bytes left out …]\n", 2)
