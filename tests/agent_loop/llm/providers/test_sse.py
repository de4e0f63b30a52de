"""Cutting a byte stream into events."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.errors import ProviderError
from agent_loop.llm.providers import sse
from agent_loop.llm.providers.sse import EventStream

TORTURE = (
    "\N{BLACK STAR}: not a field\n: comment\n\ndata: one\n\ndata:two\ndata:  three\n\nevent: x\nid: 1\n"
    "data: \N{PILE OF POO} é\n\n\n\ndata:\n\nretry: 9\n\ndata: last"
).encode()
TORTURED = [b"one", b"two\n three", "\N{PILE OF POO} é".encode(), b"", b"last"]


def events_in(pieces: Iterable[bytes]) -> list[bytes]:
    stream = EventStream("fake")
    return [event for piece in pieces for event in stream.feed(piece)] + stream.close()


def cut(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 1000])
@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_events_are_the_same_wherever_the_bytes_break(size: int, line_end: bytes) -> None:
    """HTML standard, server-sent events: fields, comments, several data lines, three line ends."""
    assert events_in(cut(TORTURE.replace(b"\n", line_end), size)) == TORTURED


@given(st.lists(st.integers(0, 60)), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_events_are_the_same_for_any_cut(cuts: list[int], line_end: bytes) -> None:
    """TCP: a read is no message, and may even be empty."""
    text = TORTURE.replace(b"\n", line_end)
    ends = sorted(min(at, len(text)) for at in cuts)

    pieces = [text[begin:end] for begin, end in zip([0, *ends], [*ends, len(text)], strict=True)]

    assert events_in(pieces) == TORTURED


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=20)), st.integers(1, 7)
)
def test_whatever_was_said_is_heard(texts: list[str], size: int) -> None:
    """Our promise: no text is lost or changed on its way through."""
    stream = b"".join(f"data: {text}\n\n".encode() for text in texts)

    assert events_in(cut(stream, size)) == [text.encode() for text in texts]


def test_an_event_comes_with_the_byte_that_completes_it() -> None:
    """Latency: a delta must not wait for the next one."""
    stream = EventStream("fake")

    assert stream.feed(b"data: a\r\n\r") == [b"a"]
    assert stream.feed(b"\ndata: b\n") == []
    assert stream.feed(b"\n") == [b"b"]


@pytest.mark.parametrize(
    "pieces",
    [[b"data: 12345678", b"9012345678"], [b"data: 1234567890\n", b"data: 1234567890\n"]],
    ids=["one-line", "many-lines"],
)
def test_an_event_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch, pieces: list[bytes]) -> None:
    """Our promise: memory is bounded whatever an endpoint sends."""
    monkeypatch.setattr(sse, "EVENT_LIMIT_BYTES", 16)

    with pytest.raises(ProviderError, match="fake sent an event of more than 16 bytes") as caught:
        events_in(pieces)

    assert (caught.value.kind, caught.value.provider) == ("malformed", "fake")


def test_a_page_instead_of_a_stream_is_kept_for_the_explanation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contract 5: an error says what was wrong, so somebody must remember what came."""
    monkeypatch.setattr(sse, "STRAY_LIMIT_BYTES", 12)
    stream = EventStream("fake")

    stream.feed(b": comment\n<html>\n<p>hello</p>\n<p>more</p>\n")
    assert stream.stray == b"<html>\n<p>hello</p>\n"

    stream.feed(b"data: after all\n\n")
    stream.feed(b"garbage\n")
    assert stream.stray == b""
