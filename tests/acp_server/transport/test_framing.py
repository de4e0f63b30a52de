"""Framing: the lines are the same whatever the blocks look like, and no line can fill the memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_server.transport.framing import LINE_CAP_BYTES, LineFramer


class Seen:
    """What a framer calls back with, in order; an over-long line is the cap as a number."""

    def __init__(self, cap_bytes: int = LINE_CAP_BYTES) -> None:
        self.all: list[bytes | int] = []
        self.framer = LineFramer(self.all.append, self.all.append, cap_bytes=cap_bytes)


@given(st.lists(st.binary(max_size=12).map(lambda line: line.replace(b"\n", b""))), st.data())
def test_any_split_of_the_bytes_gives_the_same_lines(lines: list[bytes], data: st.DataObject) -> None:
    """ACP, transports: one message per line, however the pipe cuts the stream."""
    stream = b"".join(line + b"\n" for line in lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    seen = Seen()

    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        seen.framer.feed(stream[start:end])

    assert seen.all == lines


def test_a_line_of_many_byte_characters_arrives_whole_byte_by_byte() -> None:
    """Our promise: text is decoded by the line, so a cut inside a character is no matter."""
    line = "naïve 漢字 🦀".encode()
    seen = Seen()

    for byte in line + b"\n":
        seen.framer.feed(bytes([byte]))

    assert seen.all == [line]


def test_an_unterminated_last_line_counts_as_one_and_the_end_of_a_line_does_not() -> None:
    """Contracts 13: an unterminated last line is processed."""
    seen = Seen()

    seen.framer.feed(b"one\ntwo")
    seen.framer.end()
    seen.framer.end()
    ended = Seen()
    ended.framer.feed(b"one\n")
    ended.framer.end()

    assert seen.all == [b"one", b"two"]
    assert ended.all == [b"one"]


@pytest.mark.parametrize("block_bytes", [1, 3, 1000])
def test_a_line_over_the_cap_is_reported_once_and_the_next_is_fine(block_bytes: int) -> None:
    """kimi-cli#831: the server died of one long line."""
    stream = b"x" * 8 + b"\n" + b"y" * 25 + b"\n" + b"z" * 8 + b"\n"
    seen = Seen(cap_bytes=8)

    for start in range(0, len(stream), block_bytes):
        seen.framer.feed(stream[start : start + block_bytes])

    assert seen.all == [b"x" * 8, 8, b"z" * 8]


def test_a_line_over_the_cap_that_never_ends_is_reported_at_the_end() -> None:
    """Our promise: whatever was sent before the end of input gets its answer."""
    seen = Seen(cap_bytes=4)

    seen.framer.feed(b"12345")
    seen.framer.end()

    assert seen.all == [4]


def test_an_endless_line_keeps_nothing_beyond_the_cap() -> None:
    """Our promise: memory stays bounded, whoever writes."""
    seen = Seen(cap_bytes=1000)

    for _ in range(100):
        seen.framer.feed(b"x" * 1000)

    assert sum(map(len, seen.framer._parts)) <= 1000


def test_tens_of_mebibytes_fit() -> None:
    """Scenario B01: any line up to a documented cap of tens of MiB is accepted."""
    assert 32 * 2**20 <= LINE_CAP_BYTES <= 100 * 2**20
