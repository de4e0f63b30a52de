"""Reading a shell line: what is understood is what the shell does, and the rest is not guessed."""

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.plugins.permission.shell import Script, Simple, Unreadable, Word
from agent_loop.plugins.permission.shell_reader import DEEPEST, LONGEST_CHARS, read_shell
from tests.doubles.facts import unhurried


def argvs(line: str) -> list[list[str | None]]:
    return [[word.text for word in command.argv] for command in read_shell(line).commands]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", []),
        ("  # nothing\n\n", []),
        ("git status", [["git", "status"]]),
        ("git\tstatus;", [["git", "status"]]),
        ("a && b || c | d |& e & f ; g\nh", [[each] for each in "abcdefgh"]),
        ("(a; (b)) && c", [["a"], ["b"], ["c"]]),
        ("a $(b | c) `d e`", [["b"], ["c"], ["d", "e"], ["a", None, None]]),
        ('echo "$(rm x)"', [["rm", "x"], ["echo", None]]),
        ("echo '$(rm x)' \"a b\"c\\ d", [["echo", "$(rm x)", "a bc d"]]),
        (r'''echo "\$x \"y\" \z" 5$ "$"''', [["echo", r'$x "y" \z', "5$", "$"]]),
        ("echo a#b #c\nd", [["echo", "a#b"], ["d"]]),
        ("ec\\\nho a \\\n b", [["echo", "a", "b"]]),
        ("echo $HOME ${HOME} $1 a{b,c} {}", [["echo", None, None, None, None, "{}"]]),
        ("X=1 Y=$Z X+=2 make", [["make"]]),
        ("make X=1", [["make", "X=1"]]),
        ("X\\\n=1 make 2\\\n>x", [["make"]]),
    ],
)
def test_a_line_is_read_as_its_simple_commands(line: str, found: list[list[str | None]]) -> None:
    """Contract 12: a compound command is allowed only if each simple command is."""
    assert argvs(line) == found


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("a > x", [], ["x"]),
        ("a >>x 2>y >|z", [], ["x", "y", "z"]),
        ("a <x 0< y", ["x", "y"], []),
        ("a <> x &> y", [], ["x", "y"]),
        ("a > /dev/null 2>&1 >&-", [], []),
        ("a >& x", [], ["x"]),
        ("(a) > x", [], ["x"]),
        ("> x", [], ["x"]),
        ("a > $X", [], [None]),
    ],
)
def test_a_redirection_is_a_file_read_or_written(
    line: str, reads: list[str], writes: list[str | None]
) -> None:
    """Contract 12: redirects count; a descriptor and the null device are no files."""
    commands = read_shell(line).commands

    assert [word.text for command in commands for word in command.reads] == reads
    assert [word.text for command in commands for word in command.writes] == writes


def test_what_only_running_would_tell_is_said_to_be_unknown() -> None:
    """Our promise: nothing is guessed; names that may stand for files are marked, quoted ones are not."""
    assert read_shell("X=$Y a '*' b* \\?") == Script(
        (Simple((Word("a"), Word("*"), Word("b*", is_glob=True), Word("?")), assigns=True),), opaque=True
    )


def test_a_tilde_is_the_persons_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """POSIX shell, tilde expansion: at the beginning of a word, and not in quotes."""
    monkeypatch.setenv("HOME", "/home/me")

    assert argvs("cat ~/.env ~ ~'/x' ~\\/x a~") == [["cat", "/home/me/.env", "/home/me", "~/x", "~/x", "a~"]]


@pytest.mark.parametrize(
    "line",
    [
        "cat <<EOF\nx\nEOF",
        "cat <<<x",
        "diff <(a) >(b)",
        "f() { rm x; }",
        "if a; then b; fi",
        "for x in y; do z; done",
        "{ a; }",
        "! a",
        "a;; b",
        "a && && b",
        "; a",
        "| a",
        "(a",
        "a)",
        "(a) b",
        "a (b)",
        "$(a",
        "`a",
        "`a \\` b`",
        "echo 'a",
        'echo "a',
        "echo a\\",
        "echo $((1 + 1))",
        "echo ${X:-y}",
        "echo $'a'",
        'echo $"a"',
        "echo $\\\nHOME",
        'echo "$\\\nHOME"',
        "a >",
        "a > #b",
        "a\rb",
        "a\x1bb",
        "(" * (DEEPEST + 1) + "a" + ")" * (DEEPEST + 1),
        "a" * (LONGEST_CHARS + 1),
    ],
)
def test_what_is_not_surely_understood_is_not_read(line: str) -> None:
    """Contract 12: unparsable → ask."""
    with pytest.raises(Unreadable):
        read_shell(line)


PIECES = ["a", "b c", "*", "$", "'", '"', "\\", " ", "#", "=", "~", "é", "\t", "{}", "/", "-x", "2", "\\\n"]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join))
@unhurried
def test_words_are_those_the_shell_passes_on(line: str) -> None:
    """Our promise: quotes and backslashes mean what they mean to /bin/sh; compared with the real one."""
    try:
        command, *more = read_shell(f"printf '%s\\0' x {line}").commands
    except Unreadable:
        return
    if more or any(word.text is None or word.is_glob for word in command.argv):
        return

    ran = subprocess.run(
        ["/bin/sh", "-c", f"printf '%s\\0' x {line}"],
        capture_output=True,
        timeout=10,
        cwd=Path("/"),
        check=True,
    )

    assert ran.stdout.decode().split("\0")[:-1] == [word.text for word in command.argv[2:]]


@given(st.text(st.sampled_from("ab '\"\\$`(){};&|<>#\n*~=2!"), max_size=30))
@unhurried
def test_no_line_breaks_the_reader(line: str) -> None:
    """Our promise: it reads or refuses."""
    with suppress(Unreadable):
        read_shell(line)
