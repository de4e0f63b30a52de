"""`acp-server why`: every way a call can have been decided, in words and for programs."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from acp_server import cli
from agent_loop import Card
from agent_loop.events import facts as f
from agent_loop.messages import Text
from tests.doubles.conversations import ID, asks, begin, end, header, stored
from tests.doubles.facts import placed_facts


class Told(NamedTuple):
    status: int
    lines: list[str]
    err: str


Tell = Callable[..., Told]
WHEN = "2023-11-14 22:13"
CARD = Card("execute", "make")


@pytest.fixture
def tell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Runs `acp-server why …` on the store in tmp_path."""
    monkeypatch.setenv("TZ", "UTC")

    def run(*argv: str) -> Told:
        status = cli.run(cli.parse(["--state-dir", str(tmp_path), "why", *argv]))
        said = capsys.readouterr()
        return Told(status, said.out.splitlines(), said.err)

    return run


def keep(
    tmp_path: Path, *facts: f.LoggedFact, arguments: str = "{}", result: f.ToolResult | None = None
) -> None:
    """A session with one call, `c1`, and what was logged of it."""
    ended = result or f.ToolResult(1, 1, "c1", (Text("made"),), False, "ran", None, None, CARD)
    called: list[f.LoggedFact] = [f.ToolCall(1, 1, "c0", "look", "{}", CARD), f.ToolStarted(1, 1, "c0")]
    call = f.ToolCall(1, 1, "c1", "run\x1b[2J_command", arguments, CARD)
    turn: list[f.LoggedFact] = [
        *begin(1, "Make."),
        asks(1, "c0", "c1"),
        *called,
        call,
        *facts,
        ended,
        *end(1),
    ]
    stored(tmp_path, (header(ID), placed_facts(turn)))


def decided(
    allowed: bool, by: f.DecidedBy, option: str | None = None, rule: str | None = None
) -> f.LoggedFact:
    return f.PermissionDecided(1, 1, "c1", allowed, by, option, rule)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ([], "by nobody"),
        ([f.ToolStarted(1, 1, "c1")], "by nobody: it only looks"),
        ([decided(True, "user", "allow_once")], f"{WHEN}, allowed by the person (allow_once)"),
        ([decided(False, "user", "reject_once")], f"{WHEN}, denied by the person (reject_once)"),
        (
            [decided(False, "rule", rule='deny path ".env"')],
            f'{WHEN}, denied by what the person said beforehand: deny path ".env"',
        ),
        ([decided(True, "mode", rule="mode full-auto")], f"{WHEN}, allowed by mode full-auto"),
        ([decided(True, "mode")], f"{WHEN}, allowed by nothing on record"),
        ([decided(False, "cancel")], f"{WHEN}, denied: the question was dismissed or its turn cancelled"),
        ([decided(False, "closed")], f"{WHEN}, denied: nobody could be asked"),
    ],
)
def test_it_says_who_decided_and_by_what(
    facts: Sequence[f.LoggedFact], words: str, tell: Tell, tmp_path: Path
) -> None:
    """Issue: who allowed what, by which rule; logs of earlier versions name none."""
    keep(tmp_path, *facts)

    told = tell(ID, "c1")

    assert (told.status, told.err) == (0, "")
    assert told.lines[0] == "call     run_command c1, turn 1, step 1"
    assert [line for line in told.lines if line.startswith("decided")] == [f"decided  {words}"]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"command": "make\\n\\u001b[31mall", "n": 1}', ["command: make", "all", "n: 1"]),
        ("{bad\x1b[2J", ["{bad"]),
        ("[1]", ["[1]"]),
    ],
)
def test_it_says_what_ran(arguments: str, shown: list[str], tell: Tell, tmp_path: Path) -> None:
    """Issue: what ran, exactly; nothing in it that a terminal obeys."""
    keep(tmp_path, f.ToolStarted(1, 1, "c1"), arguments=arguments)

    assert tell(ID, "c1").lines[2:] == [
        f"ran      {WHEN}, with these arguments:",
        *(f"         {line}" for line in shown),
        f"ended    {WHEN}, done (ran)",
    ]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (f.ToolResult(1, 1, "c1", (), True, "ran"), "failed (ran)"),
        (f.ToolResult(1, 1, "c1", (), False, "ran", exit=f.Exit(0)), "exit 0 (ran)"),
        (
            f.ToolResult(1, 1, "c1", (), True, "interrupted", exit=f.Exit(signal="SIGKILL")),
            "killed by SIGKILL (interrupted)",
        ),
    ],
)
def test_it_says_how_it_ended(result: f.ToolResult, words: str, tell: Tell, tmp_path: Path) -> None:
    """Issue: what ran."""
    keep(tmp_path, f.ToolStarted(1, 1, "c1"), result=result)

    assert tell(ID, "c1").lines[-1] == f"ended    {WHEN}, {words}"


def test_a_call_that_never_started_says_why(tell: Tell, tmp_path: Path) -> None:
    """Issue: a denied call ran nothing."""
    asked = f.PermissionAsked(1, 1, "c1", ("allow_once", "reject_once"), "mode ask")
    keep(
        tmp_path,
        asked,
        decided(False, "cancel"),
        result=f.ToolResult(1, 1, "c1", (Text("Nothing\nwas done."),), True, "denied"),
    )

    told = tell(ID, "c1")

    assert told.lines[1] == f"asked    {WHEN}, by mode ask; offered allow_once, reject_once"
    assert told.lines[-1] == "ran      nothing: Nothing was done."


def test_of_a_call_that_was_cut_off_it_tells_what_is_on_record(tell: Tell, tmp_path: Path) -> None:
    """Our promise: a log may end anywhere; reading it repairs nothing."""
    call = f.ToolCall(1, 1, "c1", "work", "{}", CARD)
    stored(tmp_path, (header(ID), placed_facts([*begin(1, "Make."), asks(1, "c1"), call])))
    assert tell(ID, "c1").lines[1:] == ["decided  by nobody", "ran      nothing"]

    other = "5" + ID[1:]
    stored(
        tmp_path,
        (header(other), placed_facts([*begin(1, "Make."), asks(1, "c1"), call, f.ToolStarted(1, 1, "c1")])),
    )
    assert tell(other, "c1").lines[-1] == "ended    not on record"


def test_for_programs_it_gives_the_facts(tell: Tell, tmp_path: Path) -> None:
    """Our promise: --json, like the other commands."""
    keep(tmp_path, decided(True, "user", "allow_once"))

    told = json.loads("\n".join(tell(ID, "c1", "--json").lines))

    assert [told["sessionId"], told["asked"], told["started"]] == [ID, None, None]
    assert told["decided"]["data"]["option"] == "allow_once"
    assert (told["call"]["type"], told["result"]["type"]) == ("tool/call", "tool/result")


def test_what_is_not_known_is_refused_in_words(tell: Tell, tmp_path: Path) -> None:
    """Our promise: 1, and which of the two was not found."""
    keep(tmp_path)

    assert tell(ID, "c9") == (1, [], f"There is no call c9 in the session {ID}.\n")
    assert tell("nope", "c1").status == 1

    (tmp_path / "config.toml").write_text("format = 2")
    assert "format must be 1" in tell(ID, "c1").err
