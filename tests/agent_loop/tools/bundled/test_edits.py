"""Edits as bytes: what is named changes, and nothing else does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.tools.bundled.edits import Edit, NoMatch, apply_edits

BOM = b"\xef\xbb\xbf"
ENDINGS = {"lf": b"\n", "crlf": b"\r\n", "cr in the text": b"\r.\n"}

words = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), min_size=1, max_size=6)
ends = st.sampled_from([b"\n", b"\r\n"])
lines = st.lists(st.tuples(words, ends), min_size=1, max_size=12)


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
@pytest.mark.parametrize("bom", [b"", BOM], ids=["plain", "bom"])
@pytest.mark.parametrize("last", [True, False], ids=["final newline", "none"])
@pytest.mark.parametrize("junk", [b"", b"\xff\xfe\x00"], ids=["text", "other bytes"])
def test_only_the_touched_line_changes(ending: bytes, bom: bytes, last: bool, junk: bytes) -> None:
    """Issue, edit: endings, BOM, the missing final newline and foreign bytes survive."""
    text = bom + b"one" + ending + b"two" + junk + ending + b"three" + (ending if last else b"")

    edited = apply_edits(text, [Edit("one", "1"), Edit("thr", "TH\nR")])

    style = b"\r\n" if ending == b"\r\n" else b"\n"
    wanted = bom + b"1" + ending + b"two" + junk + ending + b"TH" + style + b"Ree"
    assert edited.content == wanted + (ending if last else b"")
    assert (edited.line, edited.count) == (1, 2)


@given(lines, st.data())
def test_any_line_may_be_replaced_and_the_others_keep_their_bytes(
    given_lines: list[tuple[str, bytes]], data: st.DataObject
) -> None:
    """Rule 1: whatever mixture of endings a file has."""
    pick = data.draw(st.integers(0, len(given_lines) - 1))
    marked = [(f"<{at}>{word}", end) for at, (word, end) in enumerate(given_lines)]
    content = b"".join(word.encode() + end for word, end in marked)

    edited = apply_edits(content, [Edit(f"<{pick}>{given_lines[pick][0]}\n", "new\nand more\n")])

    end = given_lines[pick][1]
    wanted = [word.encode() + its for word, its in marked]
    wanted[pick] = b"new" + end + b"and more" + end
    assert edited.content == b"".join(wanted)
    assert edited.line == pick + 1


@given(lines, words)
def test_lines_that_stay_inside_an_edit_keep_their_endings(
    given_lines: list[tuple[str, bytes]], added: str
) -> None:
    """Rule 1: a model repeats the lines around its change."""
    marked = [(f"<{at}>{word}", end) for at, (word, end) in enumerate(given_lines)]
    content = b"".join(word.encode() + end for word, end in marked)
    old = "".join(f"{word}\n" for word, _ in marked)

    edited = apply_edits(content, [Edit(old, f"{old}+{added}\n")])

    assert edited.content.startswith(content)
    assert edited.content[len(content) :] == f"+{added}".encode() + given_lines[-1][1]
    assert edited.line == len(given_lines) + 1


def test_a_file_that_is_not_utf8_is_edited_in_its_own_letters() -> None:
    """Rule 2: what read showed as Latin-1 is found as Latin-1, and stays it."""
    content = "Grün\nblau\n".encode("latin-1")

    assert apply_edits(content, [Edit("Grün", "Weiß")]).content == "Weiß\nblau\n".encode("latin-1")
    with pytest.raises(NoMatch, match="cannot hold all of `new`") as refused:
        apply_edits(content, [Edit("Grün", "зелёный")])
    assert refused.value.code == "NOT_ENCODABLE"
    assert apply_edits(content, [Edit("blau", "синий")]).content == b"Gr" + b"\xfcn\n" + "синий\n".encode()


def test_edits_follow_one_another_and_one_that_fails_undoes_all() -> None:
    """Rule 3: all or none; the message says which."""
    assert apply_edits(b"a b", [Edit("a", "b"), Edit("b b", "c")]).content == b"c"
    with pytest.raises(NoMatch, match=r"^edit 2 of 2: `old` is not in the file"):
        apply_edits(b"a b", [Edit("a", "b"), Edit("zzz", "c")])


def test_several_places_are_named_and_may_all_be_meant() -> None:
    """Issue, edit: an ambiguous match is explained so that the model can mend it."""
    content = b"x = 1\n" * 7

    with pytest.raises(NoMatch) as refused:
        apply_edits(content, [Edit("x = 1", "x = 2")])
    every = apply_edits(content, [Edit("x = 1", "x = 2", every=True)])

    assert str(refused.value).startswith("`old` is there 7 times, at lines 1, 2, 3, 4, 5 and more;")
    assert refused.value.code == "AMBIGUOUS"
    assert (every.content, every.count) == (b"x = 2\n" * 7, 7)


@pytest.mark.parametrize(
    ("old", "words"),
    [
        ("\tindented\n", "Line 2 begins like it, so an indentation"),
        ("def greet(nme):", "The nearest is line 3: def greet(name):"),
        ("nothing of the kind here", "read it again and copy the text as it stands"),
        ("\n\n\n\n", "read it again and copy the text as it stands"),
    ],
)
def test_a_text_that_is_not_there_is_answered_with_the_nearest(old: str, words: str) -> None:
    """Issue, edit: a stale match is explained."""
    with pytest.raises(NoMatch, match="is not in the file") as refused:
        apply_edits(b"first\n    indented\ndef greet(name):\n", [Edit(old, "x")])

    assert words in str(refused.value)
    assert refused.value.code == "NOT_FOUND"


@pytest.mark.parametrize(("edit", "code"), [(Edit("a", "a"), "SAME"), (Edit("", "a"), "NOT_FOUND")])
def test_an_edit_that_means_nothing_is_refused(edit: Edit, code: str) -> None:
    """Our promise: nothing is asked of the person for nothing."""
    with pytest.raises(NoMatch) as refused:
        apply_edits(b"a", [edit])
    assert refused.value.code == code


def test_a_huge_file_is_not_searched_for_likenesses() -> None:
    """Our promise: a wrong edit answers as fast as a right one."""
    with pytest.raises(NoMatch, match="read it again"):
        apply_edits(b"line\n" * 30_000, [Edit("lime", "x")])
