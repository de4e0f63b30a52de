"""Roots: nothing a model writes as a path leads out of the session's roots."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.workspace.roots import OutsideRoots, Roots

PARTS = st.sampled_from(
    ["..", ".", "", "a", "b", "in", "out", "loop", "up", "~", "~root", "....", "..\\", " ..", "\n", "ü"]
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`outside` beside `root`, with links from one to the other."""
    base = tmp_path_factory.mktemp("tree")
    (base / "root" / "a" / "b").mkdir(parents=True)
    (base / "outside").mkdir()
    (base / "outside" / "secret").write_text("s")
    (base / "root" / "in").symlink_to("a/b")
    (base / "root" / "out").symlink_to(base / "outside")
    (base / "root" / "up").symlink_to("..")
    (base / "root" / "loop").symlink_to("loop")
    return base


@given(parts=st.lists(PARTS | st.text(max_size=3), max_size=8), absolute=st.booleans())
def test_no_spelling_of_a_path_leads_out(tree: Path, parts: list[str], absolute: bool) -> None:
    """ACP, session set-up: enforcement must stop link escapes; lexical checks alone are not enough."""
    root = tree / "root"
    path = "/".join(parts)
    path = f"{root}/{path}" if absolute else path

    try:
        real = Roots(str(root)).resolve(path)
    except (OutsideRoots, ValueError):
        return

    assert real == os.path.realpath(real)
    assert real == str(root) or real.startswith(f"{root}/")


@pytest.mark.parametrize(
    "path", ["loop/../in", "loop/../out", "loop/../out/secret", "a/../loop/../up/outside"]
)
def test_a_path_through_a_link_that_leads_to_itself_is_refused(tree: Path, path: str) -> None:
    """Contracts 12: what `realpath` gives up on may still be a link that leads out."""
    with pytest.raises(OutsideRoots, match="leads to itself"):
        Roots(str(tree / "root")).resolve(path)


@pytest.mark.parametrize(
    "path", ["..", "../outside/secret", "out/secret", "up", "in/../../../outside", "/etc/passwd", "~"]
)
def test_a_path_out_of_the_roots_is_refused_and_both_are_named(tree: Path, path: str) -> None:
    """Contracts 12: outside the roots is refused; the model reads why."""
    root = str(tree / "root")

    with pytest.raises(OutsideRoots) as refused:
        Roots(root).resolve(path)

    assert str(refused.value).startswith(f"{path} leads to ")
    assert root in str(refused.value)


def test_a_root_may_be_a_link_and_a_sibling_with_the_same_start_is_outside(tree: Path) -> None:
    """Decision 13: paths are compared by real path."""
    (tree / "rooted").mkdir(exist_ok=True)
    (tree / "alias").symlink_to("root")
    roots = Roots(str(tree / "alias"), (str(tree / "outside"),))

    assert roots.resolve("a") == str(tree / "root" / "a")
    assert roots.resolve("out/secret") == str(tree / "outside" / "secret")

    with pytest.raises(OutsideRoots):
        roots.resolve(str(tree / "rooted"))


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_is_no_path_at_all_is_a_value_error(path: str) -> None:
    """The Roots seam."""
    with pytest.raises(ValueError, match="must not be empty or contain NUL"):
        Roots("/").resolve(path)


def test_a_real_path_is_shown_relative_to_the_working_directory(tree: Path) -> None:
    """Contracts 2: titles carry the path relative to the session's root."""
    roots = Roots(str(tree / "root"))

    assert roots.shown(str(tree / "root" / "a" / "b")) == "a/b"
    assert roots.shown(str(tree / "root")) == "."
    assert roots.shown("/etc") == "/etc"
    assert Roots("/").resolve("/etc") == os.path.realpath("/etc")
    assert Roots("/").shown("/etc") == "etc"
