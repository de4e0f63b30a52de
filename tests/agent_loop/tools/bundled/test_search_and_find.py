"""search and find: what is there, and no more than is wanted."""

import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_loop.cards import Location
from agent_loop.record import replace
from agent_loop.tools.bundled import bundled_tools, find, ripgrep, search
from agent_loop.tools.bundled.find import Find
from agent_loop.tools.bundled.search import Search
from agent_loop.tools.tool import Effect
from agent_loop.workspace.roots import OutsideRoots
from tests.doubles.workshop import Workshop, said

SEARCH, FIND = Search(), Find()

pytestmark = pytest.mark.skipif(ripgrep.ripgrep_path() is None, reason="ripgrep is not installed")


@pytest.fixture
def project(workshop: Workshop) -> Workshop:
    workshop.file("src/a.py", "import os\nvalue = 1\n# VALUE\n")
    workshop.file("src/deep/b.ts", "const value = 'one $x'\n")
    workshop.file("notes.txt", "nothing\n")
    workshop.file(".hidden/c.py", "value = 3\n")
    workshop.file("build/out.py", "value = 4\n")
    workshop.file(".gitignore", "build/\n")
    (workshop.root / ".git").mkdir()
    return workshop


def lines(text: str) -> list[str]:
    return sorted(text.splitlines())


async def test_matches_come_with_path_and_line(project: Workshop) -> None:
    """Issue, search: gitignore-aware, hidden files left out."""
    prepared = await project.prepare(SEARCH, pattern="value")

    assert (prepared.card.kind, prepared.card.title) == ("search", "value")
    assert prepared.card.locations == (Location(str(project.root)),)
    assert prepared.effect == Effect("read", (str(project.root),))
    assert SEARCH.parallel_safe(SEARCH.arguments(pattern="x"))
    assert lines(said(await SEARCH.run(prepared, project.context()))) == [
        "src/a.py:2:value = 1",
        "src/deep/b.ts:1:const value = 'one $x'",
    ]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "VALUE"}, ["src/a.py:3:# VALUE"]),
        (
            {"pattern": "VALUE", "ignore_case": True, "glob": "*.py"},
            ["src/a.py:2:value = 1", "src/a.py:3:# VALUE"],
        ),
        ({"pattern": "one $x", "literal": True}, ["src/deep/b.ts:1:const value = 'one $x'"]),
        ({"pattern": "value", "path": "src/deep"}, ["src/deep/b.ts:1:const value = 'one $x'"]),
        ({"pattern": "value", "path": "src/a.py"}, ["src/a.py:2:value = 1"]),
        ({"pattern": "value = 3", "hidden": True}, [".hidden/c.py:1:value = 3"]),
        ({"pattern": "os", "context": 1}, ["src/a.py-2-value = 1", "src/a.py:1:import os"]),
        ({"pattern": "-e"}, ["No matches."]),
        ({"pattern": "$(touch pwned); '"}, ["No matches."]),
    ],
)
async def test_a_search_is_narrowed_by_its_arguments(
    project: Workshop, arguments: dict[str, Any], found: list[str]
) -> None:
    """Issue, search: regex or literal, glob, case, context; nothing of it is the shell's."""
    assert lines(said(await project.run(SEARCH, **arguments))) == found
    assert not (project.root / "pwned").exists()


async def test_a_pattern_that_is_none_is_explained(project: Workshop) -> None:
    """Quality bar: the model's fault is a result it can mend."""
    for tool, arguments in ((SEARCH, {"pattern": "(a"}), (FIND, {"glob": "[a"})):
        outcome = await project.run(tool, **arguments)
        assert (outcome.is_error, outcome.error_code) == (True, "INVALID_ARGS")
        assert "unclosed" in said(outcome)


async def test_more_than_is_wanted_is_cut_and_said(
    project: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: bounded, whatever is there."""
    monkeypatch.setattr(search, "LINES_LIMIT", 3)
    monkeypatch.setattr(find, "FILES_LIMIT", 2)
    project.file("many", "hit\n" * 100_000)

    matches = said(await project.run(SEARCH, pattern="hit")).splitlines()
    files = said(await project.run(FIND, glob="*")).splitlines()

    assert matches == ["many:1:hit", "many:2:hit", "many:3:hit", matches[-1]]
    assert matches[-1].startswith("[only the first 3 lines")
    assert files == ["many", "notes.txt", "[only the first 2; narrow the glob or the path]"]


async def test_long_lines_are_shortened(project: Workshop) -> None:
    """Our promise: a minified file does not fill the model's context."""
    project.file("min.js", "x" * 5_000 + "needle" + "x" * 5_000)

    assert len(said(await project.run(SEARCH, pattern="needle"))) < 500


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"glob": "*.py"}, ["src/a.py"]),
        ({"glob": "*.py", "hidden": True}, [".hidden/c.py", "src/a.py"]),
        ({"glob": "src/**/*.ts"}, ["src/deep/b.ts"]),
        ({"glob": "*", "path": "src"}, ["src/a.py", "src/deep/b.ts"]),
        ({"glob": "*.rs"}, ["No such files."]),
    ],
)
async def test_files_are_found_by_name(
    project: Workshop, arguments: dict[str, Any], found: list[str]
) -> None:
    """Issue, find: glob, gitignore-aware, sorted."""
    prepared = await project.prepare(FIND, **arguments)

    assert prepared.card.kind == "search"
    assert FIND.parallel_safe(FIND.arguments(glob="*"))
    assert said(await FIND.run(prepared, project.context())).splitlines() == found


async def test_the_title_says_where(project: Workshop) -> None:
    """Cards: a path relative to the root."""
    assert (await project.prepare(SEARCH, pattern="a\nb", path="src")).card.title == "a b in src"
    assert (await project.prepare(FIND, glob="*.py", path="src")).card.title == "*.py in src"


async def test_nothing_outside_the_roots_is_looked_into(project: Workshop, tmp_path: Path) -> None:
    """Contracts 12: neither by path, nor through a link met on the way."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far/secret.py").write_text("value = 'secret'\n")
    (project.root / "out").symlink_to(tmp_path / "far")

    for tool, arguments in ((SEARCH, {"pattern": "secret"}), (FIND, {"glob": "secret.py"})):
        with pytest.raises(OutsideRoots):
            await project.prepare(tool, path="out", **arguments)
        assert said(await project.run(tool, **arguments)).startswith("No ")


async def test_a_path_that_leads_elsewhere_by_now_is_not_followed(project: Workshop, tmp_path: Path) -> None:
    """Contracts 12: roots hold when the call runs."""
    (tmp_path / "far").mkdir()
    (tmp_path / "far/a.py").write_text("value\n")
    for tool, arguments in ((SEARCH, {"pattern": "value"}), (FIND, {"glob": "*"})):
        project.file("moving/x")
        prepared = await project.prepare(tool, path="moving", **arguments)
        (project.root / "moving/x").unlink()
        (project.root / "moving").rmdir()
        (project.root / "moving").symlink_to(tmp_path / "far")

        assert (await tool.run(prepared, project.context())).error_code == "CHANGED"
        (project.root / "moving").unlink()


async def test_a_person_s_own_settings_of_ripgrep_change_nothing(
    project: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: the same call finds the same on every machine."""
    (tmp_path / "rgrc").write_text("--hidden\n--no-ignore\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(tmp_path / "rgrc"))

    assert said(await project.run(FIND, glob="*.py")).splitlines() == ["src/a.py"]


async def test_a_search_that_takes_too_long_is_ended(
    project: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: every wait has an end."""
    stuck = project.file("stuck", "#!/bin/sh\nexec sleep 60\n")
    stuck.chmod(0o755)
    monkeypatch.setattr(ripgrep, "ripgrep_path", lambda: str(stuck))
    monkeypatch.setattr(ripgrep, "TIMEOUT_S", 0.05)

    began = time.monotonic()
    with anyio.fail_after(10):
        outcome = await project.run(SEARCH, pattern="x")
        other = await project.run(FIND, glob="x")

    assert (outcome.error_code, other.error_code) == ("TIMEOUT", "TIMEOUT")
    assert time.monotonic() - began < 10


def test_nobody_is_told_of_a_tool_that_cannot_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision 14: nothing is advertised that is not there."""
    monkeypatch.setattr("agent_loop.tools.bundled.ripgrep_path", lambda: None)

    assert [tool.name for tool in bundled_tools() if tool.name in ("search", "find")] == []


async def test_what_is_kept_from_the_model_is_not_found_by_a_search_of_the_folder_above(
    project: Workshop,
) -> None:
    """Issue "Acting with consent": a deny holds on real paths, also for a file that nobody named."""
    asked: list[str] = []

    def hidden(real: str) -> bool:
        asked.append(real)
        return real.endswith("/src/a.py")

    ctx = replace(project.context(), hidden=hidden)
    arguments = SEARCH.arguments(pattern="value", context=1)

    told = said(await SEARCH.run(await SEARCH.prepare(arguments, ctx), ctx))

    assert "src/deep/b.ts:1:const value = 'one $x'" in told.splitlines()
    assert told.endswith("[3 lines left out, of files that a rule keeps from you]")
    assert "a.py" not in told
    assert sorted(asked) == [f"{project.root}/src/a.py", f"{project.root}/src/deep/b.ts"]


async def test_lines_beside_a_match_are_told_from_it(project: Workshop) -> None:
    """ripgrep's own way: a colon for a match, a hyphen beside it."""
    told = said(await project.run(SEARCH, pattern="value = 1", context=1))

    assert told.splitlines() == ["src/a.py-1-import os", "src/a.py:2:value = 1", "src/a.py-3-# VALUE"]
