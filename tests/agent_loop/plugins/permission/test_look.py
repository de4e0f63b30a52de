"""What a call would touch, found on a real disk; and every spelling of a denied file is denied."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent_loop.plugins.permission import look
from agent_loop.plugins.permission.rules import Rule
from tests.agent_loop.plugins.permission.bench import command, judged, looked, touching
from tests.doubles.workshop import Workshop

ENV = Rule("deny", path=".env")
FREE = Rule("allow", kind="execute")

in_one_folder = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.fixture
def furnished(shop: Workshop) -> Workshop:
    """`.env`, links to it and to its folder, and a folder to go through."""
    shop.file(".env", "KEY=1")
    shop.file("x/y/file")
    (shop.root / "to-env").symlink_to(".env")
    (shop.root / "x" / "up").symlink_to("..")
    (shop.root / "x" / "far").symlink_to(shop.root)
    return shop


detours = st.lists(st.sampled_from([".", "x/..", "x/y/../..", "x/up", "x/far", "", "x/up/x/far"]), max_size=4)
targets = st.sampled_from([".env", "to-env", "x/up/to-env", "x/../to-env"])


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """A way to `.env` from the root."""
    return "/".join([*(part for part in draw(detours) if part), draw(targets)])


@given(spellings(), st.booleans())
@in_one_folder
def test_every_way_to_a_denied_file_is_denied(furnished: Workshop, way: str, absolute: bool) -> None:
    """Issue: a deny on `.env` holds for `./x/../.env` and symlinks."""
    spelled = f"{furnished.root}/{way}" if absolute else way
    assert os.path.samefile(furnished.root / way, furnished.root / ".env")

    assert judged(touching(furnished, "read", spelled), ENV) == "deny"
    assert judged(touching(furnished, "move", "x/y/file", spelled), ENV) == "deny"


def quoted(draw: st.DrawFn, char: str) -> str:
    return draw(st.sampled_from([char, char, f"'{char}'", f'"{char}"', f"\\{char}"]))


@st.composite
def commands(draw: st.DrawFn) -> str:
    """A command that reads, writes or removes `.env`, dressed up."""
    way = "".join(quoted(draw, char) for char in draw(spellings()))
    frame = draw(
        st.sampled_from(
            [
                "cat {}",
                "cat < {}",
                "echo x > {}",
                "echo x >>{}",
                "rm -f -- {}",
                "dd if={} of=/dev/null",
                "curl -d @{} http://localhost",
                "grep --file={} a",
                "grep -f{} a",
                "true && (cat {} | head)",
                "echo $(cat {})",
                "echo `head {}`",
                "cd x && cat ../{}",
                "cd x; cd ..; cat {}",
                "X=1 cat {} & wait",
            ]
        )
    )
    return frame.format(way.replace("\\", "") if "`" in frame else way)


@given(commands())
@in_one_folder
def test_no_command_that_can_be_read_reaches_a_denied_file(furnished: Workshop, line: str) -> None:
    """Issue: … and for `cat .env` as far as a command can be read."""
    assert judged(command(furnished, line), ENV, FREE) == "deny"


@pytest.mark.parametrize("pattern", [".e*", "*v", ".???", ".[e]nv", "x/*/.env", "x/../.en?", "[.t]*-e*"])
def test_names_that_the_shell_would_put_in_are_looked_up(pattern: str, furnished: Workshop) -> None:
    """Issue: as far as a command can be read."""
    assert judged(command(furnished, f"cat {pattern}"), ENV, FREE) == "deny"
    assert judged(command(furnished, "cat x/y/f*"), ENV, FREE) == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "cat $F",
        "cat ${F}",
        "cat $(printf .%s env)",
        "cat `printf .%s env`",
        "cat .{env,x}",
        "cat .[^a]nv",
        "cat /*/*/*/.e*",
        "for f in .*; do cat $f; done",
        "cat <<EOF\n$(cat .env)\nEOF",
        "cat $'\\x2eenv'",
    ],
)
def test_what_cannot_be_read_asks_instead(line: str, furnished: Workshop) -> None:
    """Contract 12: unparsable → ask, even where everything is allowed."""
    assert judged(command(furnished, line), ENV, FREE) == "ask"


@pytest.mark.parametrize(
    "line", ["python -c 'open(chr(46)+\"env\")'", "sh -c 'cat .e\"\"nv'", "grep -r KEY ."]
)
def test_what_a_program_does_by_itself_is_not_followed(line: str, furnished: Workshop) -> None:
    """Our documented limit: a rule is no sandbox."""
    assert judged(command(furnished, line), ENV, FREE) == "allow"


def test_a_link_is_denied_by_its_own_name_and_by_where_it_leads(shop: Workshop) -> None:
    """Our promise: what a person sees under a denied name stays closed."""
    shop.file("vault/key", "1")
    (shop.root / ".env").symlink_to("vault/key")

    for rule in (ENV, Rule("deny", path="vault/")):
        assert judged(touching(shop, "read", ".env"), rule) == "deny"
        assert judged(touching(shop, "read", "./vault/../.env"), rule) == "deny"
        assert judged(command(shop, "cat .env"), rule) == "deny"


def test_a_link_does_not_widen_what_is_allowed(shop: Workshop) -> None:
    """Contract 12: allowed is where a path really leads."""
    shop.file("src/a.py")
    shop.file("vault/key")
    (shop.root / "src" / "link").symlink_to(shop.root / "vault")
    allowed = Rule("allow", path="src/**")

    assert judged(touching(shop, "write", "src/a.py"), allowed) == "allow"
    assert judged(touching(shop, "write", "src/link/key"), allowed) is None


def test_a_session_that_was_opened_through_a_link_has_the_same_rules(shop: Workshop, tmp_path: Path) -> None:
    """Decision 13: paths are compared by real path."""
    (tmp_path / "by-link").symlink_to(shop.root)
    linked = Workshop(tmp_path / "by-link")
    gen = Rule("deny", path="src/gen")

    assert judged(touching(linked, "write", "src/gen"), gen) == "deny"
    assert judged(command(linked, f"rm {tmp_path}/by-link/src/gen"), gen) == "deny"
    assert judged(command(linked, f"rm {shop.root}/src/gen"), gen) == "deny"


def test_more_files_than_can_be_looked_at_are_not_vouched_for(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: every look is bounded, and what was not looked at asks."""
    monkeypatch.setattr(look, "MOST_FILES", 3)
    for name in ("a", "b", "c", "d"):
        shop.file(f"many/{name}")
    cds = " && ".join(f"cd {number}" for number in range(12))

    assert not looked(touching(shop, "delete", "many")).whole
    assert not looked(command(shop, "cat many/*")).whole
    assert not looked(command(shop, cds)).whole
    assert looked(touching(shop, "delete", "many/a")).whole


def test_a_link_that_is_deleted_takes_nothing_along(shop: Workshop) -> None:
    """Our promise: a link is deleted, not what it leads to."""
    shop.file("kept/.env")
    (shop.root / "link").symlink_to("kept")
    call = touching(shop, "delete", "kept")

    assert judged(call, ENV) == "deny"
    assert list(look._below(str(shop.root / "link"))) == []


@pytest.mark.parametrize("argument", ["", "\0", "a" * 5_000, "\ud800"])
def test_an_argument_that_is_no_path_is_none(argument: str, shop: Workshop) -> None:
    """Our promise: what a file is to hold is an argument, too."""
    call = touching(shop, "write", "a.txt")
    call = type(call)(call.name, {**call.arguments, "content": argument, "size": 1}, call.prepared, call.ctx)

    assert [place.names for deed in looked(call).deeds for place in deed.places] == [(f"{shop.root}/a.txt",)]


def test_going_home_counts_as_going_elsewhere(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    """POSIX shell, cd: without a word it goes home; where it goes is not always known."""
    monkeypatch.setenv("HOME", str(shop.root / "home"))
    shop.file("home/.env")
    key = Rule("deny", path="home/key")

    assert judged(command(shop, "cd && cat key"), key) == "deny"
    assert judged(command(shop, "cd $X && cat key"), key) == "ask"
    assert judged(command(shop, "> key && cd home && :"), key) is None
