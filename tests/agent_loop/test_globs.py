"""Globs as gitignore has them."""

import pytest

from agent_loop.globs import is_floating, is_glob, literal_length, matches


@pytest.mark.parametrize("glob", [".env", "*.pem", "/etc/**", "a/", "**", "a/**/b", "foo\\ ", "[ab]c", "/a"])
def test_a_pattern_of_gitignore_is_one(glob: str) -> None:
    """Contract 12: gitignore globs."""
    assert is_glob(glob)


@pytest.mark.parametrize("glob", ["", " ", "/", "#a", "!a", "a\\", "[a"])
def test_what_could_match_nothing_or_means_the_contrary_is_none(glob: str) -> None:
    """Our promise: a rule that can never hold is an error of its author, not a rule."""
    assert not is_glob(glob)


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        (".env", ".env", True),
        (".env", "a/b/.env", True),
        (".env", ".env/inside", True),
        (".env", ".envrc", False),
        ("/a", "a", True),
        ("/a", "b/a", False),
        ("a/b", "a/b", True),
        ("a/b", "x/a/b", False),
        ("a/", "a", False),
        ("a/", "a/", True),
        ("a/*.py", "a/b/c.py", False),
        ("a/**/c.py", "a/b/c.py", True),
    ],
)
def test_a_glob_matches_as_git_would(glob: str, path: str, expected: bool) -> None:
    """gitignore(5): a slash anchors, `*` stays in its folder, a slash at the end means a folder."""
    assert matches(glob, path) is expected


def test_a_glob_says_how_literally_it_is_meant() -> None:
    """Contract 12: the longer literal wins; a pattern without a slash matches at any depth."""
    assert [literal_length(glob) for glob in ("**", "*.py", "src/[ab]?.py", "a/b")] == [0, 3, 7, 3]
    assert [is_floating(glob) for glob in ("*.py", "build/", "/a", "a/b")] == [True, True, False, False]
