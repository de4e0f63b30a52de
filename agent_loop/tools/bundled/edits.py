"""Puts new text in the place of old in a file's bytes, and leaves every other byte as it was. Pure.

Rules.
1. Models write `\\n`. A `\\r\\n` of the file matches it; a line that stays keeps its own ending, and a line
   that comes takes the one of the line it replaces, or of its neighbours.
2. The file's bytes decide the encoding: UTF-8 first, then Latin-1 where they are not UTF-8. What is not
   touched need not be text at all.
3. Edits are made one after the other, each on what the one before left; all are made or none.
"""

import difflib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from agent_loop.record import record

PLACES_NAMED: Final = 5
"""How many places are named when there are several."""
LOOK_ALIKE: Final = 0.6
LOOK_ALIKE_LINES: Final = 20_000


@record
class Edit:
    """One change; `every` replaces all occurrences instead of the only one."""

    old: str
    new: str
    every: bool = False


@record
class Edited:
    """What came of it: a big file is held once, and what takes the place of its middle.

    Attributes:
        old: All there was before.
        head, tail: How many bytes of it no edit came near, at the beginning and at the end.
        middle: What stands between these now.
        line: The first that changed, counted from 1.
        count: Places that were changed.
    """

    old: bytes
    head: int
    tail: int
    middle: bytes
    line: int
    count: int

    @property
    def size(self) -> int:
        """Of the content, in bytes."""
        return self.head + len(self.middle) + self.tail

    @property
    def parts(self) -> tuple[bytes | memoryview, ...]:
        """The content in pieces, nothing copied."""
        whole = memoryview(self.old)
        return whole[: self.head], self.middle, whole[len(whole) - self.tail :]

    @property
    def content(self) -> bytes:
        """All there is now; made for each who asks."""
        return b"".join(self.parts)


class NoMatch(Exception):
    """An edit does not fit the file; the message tells a model how to mend it."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def apply_edits(content: bytes, edits: Sequence[Edit]) -> Edited:
    """The content with all edits made.

    Raises:
        NoMatch: One does not fit: `NOT_FOUND`, `AMBIGUOUS`, `SAME` or `NOT_ENCODABLE`.
    """
    edited: Edited | None = None
    for at, edit in enumerate(edits, 1):
        try:
            made = _apply(content if edited is None else edited.content, edit)
        except NoMatch as refused:
            which = f"edit {at} of {len(edits)}: " if len(edits) > 1 else ""
            raise NoMatch(f"{which}{refused}", refused.code) from None
        edited = made if edited is None else _together(edited, made)
    assert edited is not None
    return edited


def _together(one: Edited, other: Edited) -> Edited:
    """Both as one; the other was made on what the one left."""
    head, tail, now = min(one.head, other.head), min(one.tail, other.tail), other.content
    middle = now[head : len(now) - tail]
    return Edited(one.old, head, tail, middle, min(one.line, other.line), one.count + other.count)


def _apply(content: bytes, edit: Edit) -> Edited:
    if edit.old == edit.new:
        raise NoMatch("`old` and `new` are the same; nothing would change.", "SAME")
    if not edit.old:
        raise NoMatch("`old` is empty; give the text to replace, or use write for a new file.", "NOT_FOUND")

    flat = _Flat(content)
    for encoding in ("utf-8", "latin-1"):
        old = _encoded(edit.old, encoding)
        places = [] if old is None else list(_places(flat.bytes, old))
        if old is None or not places or (encoding != "utf-8" and _is_utf8(content)):
            continue
        if len(places) > 1 and not edit.every:
            raise NoMatch(_ambiguous(flat, places), "AMBIGUOUS")
        new = _encoded(edit.new, encoding)
        if new is None:
            raise NoMatch(f"the file is {encoding}, which cannot hold all of `new`.", "NOT_ENCODABLE")
        head, end = flat.real(places[0]), flat.real(places[-1] + len(old))
        line = flat.line_of(places[0] + _same_head(old, new))
        middle = _spliced(flat, places, old, new)
        return Edited(content, head, len(content) - end, middle, line, len(places))
    raise NoMatch(_not_found(flat, edit.old), "NOT_FOUND")


class _Flat:
    """Bytes with every `\\r\\n` as `\\n`, and the way back to where they came from."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.bytes = content
        self._dropped: list[int] = []
        # One byte is looked for ten times as fast as two.
        if b"\r" in content and b"\r\n" in content:
            self.bytes = content.replace(b"\r\n", b"\n")
            # Where in the flat bytes a carriage return was dropped, right before.
            self._dropped = [at - n for n, at in enumerate(_places(content, b"\r\n"))]

    def real(self, place: int) -> int:
        """The place in the content; of a line break, that of its carriage return."""
        return place + bisect_right(self._dropped, place - 1)

    def line_of(self, place: int) -> int:
        return self.bytes.count(b"\n", 0, place) + 1

    def ending_near(self, place: int) -> bytes:
        """How the line at this place ends; if it is the last one, how the one before does."""
        at = self.bytes.find(b"\n", place)
        if at < 0:
            at = self.bytes.rfind(b"\n", 0, place)
        if at < 0:
            return b"\n"
        return b"\r\n" if self.content[self.real(at) : self.real(at) + 2] == b"\r\n" else b"\n"


def _spliced(flat: _Flat, places: Sequence[int], old: bytes, new: bytes) -> bytes:
    """What stands from the first place to the end of the last."""
    # Views: a slice of a file of many megabytes would be a copy of it.
    whole = memoryview(flat.content)
    parts: list[bytes | memoryview] = []
    done = flat.real(places[0])
    for place in places:
        start, end = flat.real(place), flat.real(place + len(old))
        parts.append(whole[done:start])
        parts.extend(_changed(flat, place, old, new))
        done = end
    return b"".join(parts)


def _changed(flat: _Flat, place: int, old: bytes, new: bytes) -> Iterator[bytes]:
    """The new bytes of one place: lines that stay come from the file, the others get an ending that fits."""
    if flat.content is flat.bytes:
        yield new
        return

    olds, news = old.splitlines(keepends=True), new.splitlines(keepends=True)
    starts = [place]
    for line in olds:
        starts.append(starts[-1] + len(line))
    matcher = difflib.SequenceMatcher(None, olds, news, autojunk=False)
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if kind == "equal":
            yield flat.content[flat.real(starts[old_from]) : flat.real(starts[old_to])]
            continue
        for at, line in enumerate(news[new_from:new_to]):
            beside = min(old_from + at, max(old_to - 1, old_from))
            ending = flat.ending_near(starts[min(beside, len(olds) - 1)])
            yield line[:-1] + ending if line.endswith(b"\n") else line


def _places(content: bytes, wanted: bytes) -> Iterator[int]:
    at = content.find(wanted)
    while at >= 0:
        yield at
        at = content.find(wanted, at + len(wanted))


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _encoded(text: str, encoding: str) -> bytes | None:
    try:
        return text.replace("\r\n", "\n").encode(encoding)
    except UnicodeEncodeError:
        return None


def _same_head(old: bytes, new: bytes) -> int:
    """How many bytes both begin with: the change is behind them."""
    shared = min(len(old), len(new))
    return next((at for at in range(shared) if old[at] != new[at]), shared)


def _ambiguous(flat: _Flat, places: Sequence[int]) -> str:
    lines = [str(flat.line_of(place)) for place in places[:PLACES_NAMED]]
    more = "" if len(places) <= PLACES_NAMED else " and more"
    return (
        f"`old` is there {len(places)} times, at lines {', '.join(lines)}{more}; give more of the text "
        "around the one you mean, or set replace_all."
    )


def _not_found(flat: _Flat, old: str) -> str:
    """Why it may not be there: the nearest line, if one is near."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")
    lines = flat.bytes.decode("utf-8", "replace").split("\n")
    if not wanted or len(lines) > LOOK_ALIKE_LINES:
        return "`old` is not in the file; read it again and copy the text as it stands."

    same = [at for at, line in enumerate(lines, 1) if line.strip() == wanted]
    if same:
        return (
            f"`old` is not in the file as it stands. Line {same[0]} begins like it, so an indentation, a "
            "space or a later line differs; read from there and copy the text exactly."
        )
    near = difflib.get_close_matches(wanted, [line.strip() for line in lines], 1, LOOK_ALIKE)
    if near:
        at = next(at for at, line in enumerate(lines, 1) if line.strip() == near[0])
        return f"`old` is not in the file. The nearest is line {at}: {near[0][:200]}"
    return "`old` is not in the file; read it again and copy the text as it stands."
