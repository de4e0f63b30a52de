"""Rules against calls: who wins, and what a rule is held against."""

from pathlib import Path

import pytest

from agent_loop.plugins.permission.policy import Ruling
from agent_loop.plugins.permission.rules import UNREADABLE, Rule
from tests.agent_loop.plugins.permission.bench import command, fetching, judged, ruled, touching
from tests.doubles.workshop import Workshop

ENV = Rule("deny", path=".env")
GIT = Rule("allow", command="git status")


def test_a_rule_reads_as_a_person_would_say_it() -> None:
    """Contract 1: asked and decided facts name the rule."""
    rule = Rule("ask", "write", "write", "src/**", "a b", "x.org")
    assert rule.text == 'ask tool "write" kind "write" path "src/**" command "a b" domain "x.org"'
    assert ENV.text == 'deny path ".env"'


def test_without_a_rule_that_meets_it_a_call_is_left_to_the_mode(shop: Workshop) -> None:
    """Contract 12: rules come on top of the mode."""
    assert ruled(touching(shop, "write", "a.txt")) is None
    assert ruled(touching(shop, "write", "a.txt"), ENV, GIT) is None
    assert ruled(command(shop, "make"), GIT) is None


def test_any_rule_that_denies_wins(shop: Workshop) -> None:
    """Contract 12: however literally another one allows."""
    rules = (Rule("allow", "write", path="config/.env"), ENV, Rule("ask", kind="write"))
    assert ruled(touching(shop, "write", "config/.env", tool="write"), *rules) == Ruling("deny", ENV.text)


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ([Rule("ask", kind="write"), Rule("allow", path="src/**")], "allow"),
        ([Rule("allow", path="src/**"), Rule("ask", path="src/*.lock")], "ask"),
        ([Rule("allow", path="src/*.lock"), Rule("ask", path="src/**")], "allow"),
        ([Rule("allow", path="src/**"), Rule("ask", path="src/**")], "ask"),
        ([Rule("ask", kind="write"), Rule("allow", tool="edit")], "allow"),
        ([Rule("allow", kind="delete"), Rule("allow", tool="write")], None),
    ],
)
def test_between_allow_and_ask_the_longer_literal_wins(
    rules: list[Rule], verdict: str | None, shop: Workshop
) -> None:
    """Contract 12; asking wins a tie."""
    for order in (rules, rules[::-1]):
        assert judged(touching(shop, "write", "src/a.lock", tool="edit"), *order) == verdict


@pytest.mark.parametrize(
    ("glob", "path", "verdict"),
    [
        (".env", "deep/down/.env", "deny"),
        (".env", ".envrc", None),
        ("src/gen", "src/gen/a.py", "deny"),
        ("src/gen", "lib/src/gen/a.py", None),
        ("secrets/", "secrets/key", "deny"),
        ("secrets/", "secrets", "deny"),
        ("secrets/", "public", None),
        ("$root/src", "src/a.py", "deny"),
        ("/etc/**", "src/a.py", None),
    ],
)
def test_a_path_is_meant_as_in_gitignore(glob: str, path: str, verdict: str | None, shop: Workshop) -> None:
    """Contract 12: a gitignore glob on the real path; an absolute one means the whole disk."""
    shop.file("secrets/key")
    deny = Rule("deny", path=glob.replace("$root", str(shop.root)))
    assert judged(touching(shop, "read", path), deny) == verdict


def test_a_path_below_the_home_directory_is_written_with_a_tilde(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: one settings file for every machine."""
    monkeypatch.setenv("HOME", str(shop.root.parent))
    ssh = Rule("deny", path="~/root/.ssh/")
    (shop.root / ".ssh").mkdir()

    assert judged(command(shop, "cat ~/root/.ssh/id"), ssh) == "deny"
    assert judged(touching(shop, "read", ".ssh/id"), ssh) == "deny"
    assert judged(touching(shop, "read", "ssh/id"), ssh) is None


def test_all_that_a_call_touches_must_be_allowed_and_nothing_denied(shop: Workshop) -> None:
    """Contract 12: a move has two ends, a folder all that is in it."""
    shop.file("a/secret.pem")
    shop.file("b")
    move = touching(shop, "move", "b", "c")
    assert judged(move, Rule("allow", path="b")) is None
    assert judged(move, Rule("allow", path="b"), Rule("allow", path="c")) == "allow"
    assert judged(move, Rule("deny", path="c")) == "deny"
    assert judged(touching(shop, "delete", "a"), Rule("deny", path="*.pem")) == "deny"
    assert judged(touching(shop, "delete", "a"), Rule("allow", path="*.pem")) is None
    assert judged(touching(shop, "delete", "a"), Rule("allow", path="a/")) == "allow"
    assert judged(touching(shop, "read", "a"), Rule("deny", path="*.pem")) is None


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("git status", "allow"),
        ("git 'status' -s", "allow"),
        ("git status && ls -l | wc", "allow"),
        ("(git status; ls)", "allow"),
        ("ls $(git status)", "allow"),
        ("ls *.py $HOME", "allow"),
        ("ls 2>/dev/null", "allow"),
        ("ls < b", "allow"),
        ("git", None),
        ("git statuses", None),
        ("git $X", None),
        ("/bin/git status", None),
        ("git status && rm x", None),
        ("ls $(rm x)", None),
        ("PATH=. git status", None),
        ("ls > x", None),
        ("git status; for x in *; do rm $x; done", None),
    ],
)
def test_a_compound_command_is_allowed_only_if_each_simple_one_is(
    line: str, verdict: str | None, shop: Workshop
) -> None:
    """Contract 12: `&&`, `|`, `;`, subshells, substitutions and redirects; unparsable is not allowed."""
    rules = (GIT, Rule("allow", command="ls"), Rule("allow", command="wc"))
    assert judged(command(shop, line), *rules) == verdict


def test_a_file_a_command_is_redirected_to_is_written(shop: Workshop) -> None:
    """Contract 12: a redirect is allowed as a write is, or by a rule on everything a tool runs."""
    echo = command(shop, "echo x > build/log")
    rules = [Rule("allow", command="echo")]
    assert judged(echo, *rules, Rule("allow", kind="write", path="build/**")) == "allow"
    assert judged(echo, *rules, Rule("allow", kind="write", path="src/**")) is None
    assert judged(echo, Rule("allow", kind="execute")) == "allow"
    assert judged(echo, Rule("allow", tool="run_command")) == "allow"
    assert judged(echo, Rule("deny", kind="write", path="build/**")) == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "rm -rf x",
        "/bin/rm -rf x",
        "ls && rm -rf x",
        "X=1 rm -rf x",
        "echo $(rm -rf x)",
        "r''m -rf x",
        "(rm -rf)",
    ],
)
def test_a_command_that_is_denied_is_found_wherever_it_can_be_read(line: str, shop: Workshop) -> None:
    """Contract 12: any matching deny wins."""
    assert (
        judged(command(shop, line), Rule("deny", command="rm -rf"), Rule("allow", kind="execute")) == "deny"
    )


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("rm a", "allow"),
        ("rm $X", "ask"),
        ("$X -rf", "ask"),
        ("rm -r* a", "ask"),
        ("if rm; then b; fi", "ask"),
    ],
)
def test_what_cannot_be_read_asks_where_a_rule_might_deny(line: str, verdict: str, shop: Workshop) -> None:
    """Contract 12: unparsable → ask; here even a rule that allows all commands does not vouch for it."""
    allowed = Rule("allow", kind="execute")
    ruling = ruled(command(shop, line), Rule("deny", command="rm -rf"), allowed)
    assert ruling is not None
    assert (ruling.verdict, ruling.text) == (verdict, UNREADABLE if verdict == "ask" else allowed.text)


def test_a_rule_that_could_not_deny_it_makes_nothing_ask(shop: Workshop) -> None:
    """Our promise: a rule about another tool, or about hosts, says nothing of commands."""
    others = (Rule("deny", "write", path=".env"), Rule("deny", domain="x.org"), Rule("deny", kind="fetch"))
    assert judged(command(shop, "echo $X"), *others) is None


@pytest.mark.parametrize(
    ("domain", "host", "met"),
    [
        ("x.org", "X.org.", True),
        ("x.org", "a.x.org", False),
        ("*.x.org", "a.x.org", True),
        ("*.x.org", "x.org", False),
        ("*.x.org", "ax.org", False),
    ],
)
def test_a_domain_is_a_host_or_all_below_it(domain: str, host: str, met: bool, shop: Workshop) -> None:
    """Contract 12: domain."""
    assert judged(fetching(shop, host), Rule("deny", domain=domain)) == ("deny" if met else None)
    assert judged(command(shop, "ls"), Rule("deny", domain=domain)) is None


def test_a_rule_holds_in_every_directory_of_a_session(shop: Workshop, tmp_path: Path) -> None:
    """ACP, session setup: additional directories are roots as cwd is."""
    (tmp_path / "outside" / "gen").mkdir()
    line = f"touch {tmp_path}/outside/gen/x"
    assert judged(command(shop, line), Rule("deny", path="gen/x")) is None
    assert judged(command(shop, line), Rule("deny", path="x")) == "deny"
