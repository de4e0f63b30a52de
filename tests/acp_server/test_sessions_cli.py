"""`acp-server sessions`: what people are shown of a store, and what they are refused, in words."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from acp_server import cli
from acp_server.sessions_find import short_width
from agent_loop import Card, CardDiff, chunks
from agent_loop.events import facts as f
from tests.doubles.conversations import CWD, ID, OTHER_ID, asks, begin, deltas, end, header, ordinary, stored
from tests.doubles.conversations import hostile as hostile_facts
from tests.doubles.editor import Editor
from tests.doubles.facts import one_turn, placed_facts

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
HARMLESS = set("\n\t")


class Told(NamedTuple):
    status: int
    out: str
    err: str


Tell = Callable[..., Told]


@pytest.fixture
def tell(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Tell:
    """Runs `acp-server sessions …` on the store in tmp_path."""
    monkeypatch.setenv("TZ", "UTC")

    def run(*argv: str) -> Told:
        status = cli.run(cli.parse(["--state-dir", str(tmp_path), "sessions", *argv]))
        return Told(status, *capsys.readouterr())

    return run


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[Editor, str]]:
    """A real server with a scripted model, on the store in tmp_path, and the session it has open."""
    (tmp_path / "project").mkdir()
    line = {"do": [{"think": "Hm."}, {"text": "Hello."}, {"finish": "stop"}]}
    (tmp_path / "model.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "config.toml").write_text(
        'format = 1\nagent = {model = "scripted/x"}\n'
        f'providers.scripted = {{kind = "scripted", script = "{tmp_path / "model.jsonl"}"}}\n'
    )
    kept = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE_")}
    env = {**kept, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": os.defpath}
    argv = [sys.executable, "-m", "acp_server", "--state-dir", str(tmp_path)]
    editor = Editor(argv, cwd=tmp_path, env=env)
    editor.start()
    try:
        editor.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        made = editor.call("session/new", {"cwd": str(tmp_path / "project"), "mcpServers": []})
        session = made["result"]["sessionId"]
        prompt = [{"type": "text", "text": "Say hello"}]
        editor.call("session/prompt", {"sessionId": session, "prompt": prompt})
        yield editor, session
    finally:
        editor.close()


class Terminal(io.StringIO):
    """A terminal that somebody sits at."""

    def isatty(self) -> bool:
        return True


def test_the_list_is_a_table_with_the_newest_session_first(tell: Tell, tmp_path: Path) -> None:
    """Issue 3: short id, title, updated and directory, for people."""
    logs = stored(tmp_path, (header(), ordinary()), (header(OTHER_ID, None), one_turn()))
    for number, path in enumerate([*logs.rglob(f"{ID}.jsonl"), *logs.rglob(f"{OTHER_ID}.jsonl")]):
        os.utime(path, (1_700_000_000 + number * 3600,) * 2)

    told = tell("list")

    assert told == Told(
        0,
        "ID        UPDATED           TITLE          DIRECTORY\n"
        "4f2b0000  2023-11-14 23:13  hi             -\n"
        f"4f2a9c1e  2023-11-14 22:13  Mend hello.py  {CWD}\n",
        "",
    )


def test_the_list_for_programs_says_everything_in_full(tell: Tell, tmp_path: Path) -> None:
    """Issue 3: `--json`."""
    logs = stored(tmp_path, (header(parent="before"), ordinary()))
    os.utime(next(logs.rglob("*.jsonl")), (1_700_000_000,) * 2)

    told = tell("list", "--json")

    assert json.loads(told.out) == [
        {
            "sessionId": ID,
            "title": "Mend hello.py",
            "createdAt": "2023-11-14T22:13:20Z",
            "updatedAt": "2023-11-14T22:13:20Z",
            "cwd": CWD,
            "parent": "before",
        }
    ]


def test_the_list_goes_through_all_pages(tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our promise: a list for people is whole, whatever the store hands out at once."""
    monkeypatch.setattr("acp_server.sessions_find.PAGE", 2)
    ids = [f"id-{number}" for number in range(5)]
    stored(tmp_path, *((header(each), one_turn()) for each in ids))

    told = tell("list", "--json")

    assert sorted(each["sessionId"] for each in json.loads(told.out)) == ids


def test_the_list_of_one_directory_takes_it_relative_and_by_real_path(
    tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ACP, session/list: cwd is one directory, however it is spelled."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    stored(tmp_path, (header(ID, str(tmp_path / "real")), one_turn()), (header(OTHER_ID), one_turn()))
    monkeypatch.chdir(tmp_path)

    here, nowhere = tell("list", "--cwd", "link", "--json"), tell("list", "--cwd", "elsewhere")

    assert [each["sessionId"] for each in json.loads(here.out)] == [ID]
    assert nowhere == Told(0, "", "No sessions there.\n")


def test_an_empty_store_is_told_in_words_and_nothing_is_made(tell: Tell, tmp_path: Path) -> None:
    """Our promise: looking leaves nothing behind."""
    assert tell("list") == Told(0, "", "No sessions are stored.\n")
    assert tell("list", "--json") == Told(0, "[]\n", "")
    assert list(tmp_path.iterdir()) == []


def test_a_long_title_is_cut_and_ids_are_as_long_as_telling_them_apart_needs() -> None:
    """Our promise: what the table shows of an id names one session."""
    assert short_width([]) == 8
    assert short_width(["12345678-a", "87654321-b"]) == 8
    assert short_width(["12345678-a", "12345678-b"]) == 10


def test_a_conversation_is_shown_as_the_demo_shows_one(tell: Tell, tmp_path: Path) -> None:
    """Issue 3: the conversation as text; of a change, only what changed."""
    stored(tmp_path, (header(), ordinary()))

    told = tell("show", ID)

    assert told.err == ""
    assert told.out == (
        f"Mend hello.py ({ID}, 2023-11-14 22:13, in {CWD})\n\n"
        "you     Mend hello.py\n"
        "thinks  I should look.\n"
        "agent   Let me **mend** it.\n"
        "tool    edit hello.py: pending\n"
        f"        | {CWD}/hello.py\n"
        "        | - print(sys.argv[1])\n"
        "        | + print(sys.argv[1:])\n"
        "tool    edit hello.py: in_progress → completed\n"
        "tool    execute python hello.py: pending → in_progress → completed\n"
        "        | hello\n"
        "        | [part of the output is left out]\n"
        "ended   end_turn\n"
    )


def test_a_shown_conversation_cannot_act_on_the_terminal(tell: Tell, tmp_path: Path) -> None:
    """Our promise: a transcript is data, whoever wrote it."""
    stored(tmp_path, (header(ID, "/tmp/\x1b[2J"), hostile_facts()))

    told = [tell("show", ID), tell("list"), tell("export", ID), tell("export", ID, "--format", "html")]

    shown = "".join(each.out for each in told)
    assert [char for char in shown if not char.isprintable() and char not in HARMLESS] == []


def test_a_conversation_for_programs_is_its_log(tell: Tell, tmp_path: Path) -> None:
    """Issue 3: `--json`; nothing is left out."""
    stored(tmp_path, (header(), ordinary()))

    told = json.loads(tell("show", "4f2a", "--json").out)

    assert told["session"]["id"] == ID
    assert [row["type"] for row in told["facts"]][:2] == ["turn/start", "user/message"]
    assert told["facts"][-1]["type"] == "turn/end"


def test_an_unambiguous_beginning_names_a_session_and_any_other_is_refused(
    tell: Tell, tmp_path: Path
) -> None:
    """Issue 3: an id may be given as an unambiguous prefix."""
    stored(tmp_path, (header(), one_turn()), (header(OTHER_ID), one_turn()), (header("4f"), one_turn()))

    assert tell("show", "4f2a").out.startswith(f"hi ({ID}")
    assert tell("show", "4f").out.startswith("hi (4f,")
    assert tell("show", "4f2") == Told(1, "", f"2 sessions begin with 4f2: {ID}, {OTHER_ID}\n")
    assert tell("show", "9") == Told(1, "", "There is no session 9.\n")
    assert tell("show", "") == Told(1, "", "There is no session ''.\n")
    assert tell("check", "../x\x1b[2J").err == "There is no session '../x\\x1b[2J'.\n"


def test_many_sessions_that_begin_alike_are_not_all_named(tell: Tell, tmp_path: Path) -> None:
    """Our promise: an error message is one line a person reads."""
    stored(tmp_path, *((header(f"same-{number}"), one_turn()) for number in range(6)))

    assert tell("show", "same").err == (
        "6 sessions begin with same: same-0, same-1, same-2, same-3, same-4, …\n"
    )


def test_check_tells_sound_torn_and_broken_logs_apart(tell: Tell, tmp_path: Path) -> None:
    """Issue 3: the invariants checker as a user's tool; it names the fact and the rule."""
    torn = placed_facts([*begin(1, "go"), *deltas(1, chunks.TextDelta, "half")])
    broken = placed_facts([*begin(1, "go"), asks(1, "c1"), *end(1)])
    stored(tmp_path, (header("sound"), ordinary()), (header("torn"), torn), (header("wrong"), broken))
    damaged = stored(tmp_path, (header("damaged"), one_turn()))
    log = next(damaged.rglob("damaged.jsonl"))
    log.write_bytes(log.read_bytes().replace(b'"seq":3', b'"seq":9'))

    told = tell("check")

    assert told.status == 1
    assert sorted(told.out.splitlines()) == [
        "damaged  broken: The log of session damaged is damaged at row 5.",
        "sound  ok",
        "torn  torn tail (repaired when loaded), unless its turn runs now",
        "wrong  broken: fact 4 step/end: no result for ['c1'] (rule 5)",
    ]
    assert tell("check", "sound").status == 0
    assert tell("check", "torn").status == 0
    assert json.loads(tell("check", "wrong", "--json").out) == [
        {
            "sessionId": "wrong",
            "state": "broken",
            "words": "broken: fact 4 step/end: no result for ['c1'] (rule 5)",
            "seq": 4,
        }
    ]
    assert json.loads(tell("check", "sound", "--json").out) == [
        {"sessionId": "sound", "state": "ok", "words": "ok"}
    ]


def test_a_session_deleted_during_the_check_of_all_is_passed_over(
    tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: the commands work beside running servers."""
    stored(tmp_path, (header("gone"), one_turn()))

    async def listed(store: object) -> list[Any]:
        next((tmp_path / "sessions").rglob("gone.jsonl")).unlink()
        return [type("Listed", (), {"header": header("gone")})]

    monkeypatch.setattr("acp_server.sessions_cli.every_session", listed)

    assert tell("check") == Told(0, "", "")


def test_an_export_goes_where_it_is_asked_to(tell: Tell, tmp_path: Path) -> None:
    """Issue 3: stdout by default, Markdown unless the file's name or the person says HTML."""
    stored(tmp_path, (header(), ordinary()))
    page, note, odd = tmp_path / "a.html", tmp_path / "a.md", tmp_path / "a"

    assert tell("export", ID).out.startswith("# Mend hello.py\n")
    assert tell("export", ID, "--format", "html").out.startswith("<!DOCTYPE html>")
    assert tell("export", ID, "--output", str(page)) == Told(0, "", "")
    assert tell("export", ID, "--output", str(note)) == Told(0, "", "")
    assert tell("export", ID, "--format", "html", "--output", str(odd)) == Told(0, "", "")
    assert page.read_text("utf-8") == odd.read_text("utf-8")
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert note.read_text("utf-8").startswith("# Mend hello.py\n")


def test_an_export_that_cannot_be_written_is_told_in_words(tell: Tell, tmp_path: Path) -> None:
    """Our promise: an error is a sentence on stderr."""
    stored(tmp_path, (header(), ordinary()))

    told = tell("export", ID, "--output", str(tmp_path / "no" / "a.md"))

    assert told == Told(1, "", f"{tmp_path}/no/a.md cannot be written: No such file or directory.\n")


def test_nothing_is_deleted_unasked(tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 3: without a terminal, `--yes` is needed; 2 is the exit status of a wrong usage."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    stored(tmp_path, (header(), one_turn()))

    told = tell("delete", ID)

    assert told == Told(2, "", "Deleting cannot be undone; say --yes when nobody can be asked.\n")
    assert tell("show", ID).status == 0


@pytest.mark.parametrize(
    ("answer", "status", "last", "left"),
    [
        ("y\n", 0, f"deleted {ID}", 0),
        ("n\n", 1, "Nothing was deleted.", 1),
        ("\n", 1, "Nothing was deleted.", 1),
        ("", 1, "Nothing was deleted.", 1),
    ],
    ids=("yes", "no", "enter", "end of input"),
)
def test_at_a_terminal_the_person_is_asked(
    answer: str,
    status: int,
    last: str,
    left: int,
    tell: Tell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Issue 3: delete asks, and only a clear yes is one."""
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    stored(tmp_path, (header(), one_turn()))

    told = tell("delete", "4f2a")

    assert (told.status, told.err) == (status, "")
    assert told.out.startswith(f"{ID}  hi\nDelete this session? It cannot be undone. [y/N] ")
    assert told.out.endswith(f"{last}\n")
    assert len(json.loads(tell("list", "--json").out)) == left


def test_several_sessions_are_deleted_at_once_and_a_wrong_id_deletes_none(
    tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our promise: what a person meant is known before anything is lost."""
    monkeypatch.setattr(sys, "stdin", Terminal("yes\n"))
    stored(tmp_path, (header("a"), one_turn()), (header("b"), one_turn()), (header("bc"), one_turn()))

    wrong = tell("delete", "a", "nowhere", "--yes")
    told = tell("delete", "b", "bc", "b")

    assert wrong == Told(1, "deleted a\n", "There is no session nowhere.\n")
    assert "Delete these 2 sessions?" in told.out
    assert told.out.endswith("deleted b\ndeleted bc\n")


def test_colour_is_for_a_terminal(tell: Tell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """no-color.org, and our promise that a pipe gets plain text."""
    stored(tmp_path, (header(), one_turn()))
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", terminal)

    tell("check")

    assert terminal.getvalue() == f"{ID}  \x1b[32mok\x1b[0m\n"


def test_settings_that_cannot_be_used_are_told_in_words(tell: Tell, tmp_path: Path) -> None:
    """Our promise: with broken settings nobody knows which store is meant, so none is read."""
    (tmp_path / "config.toml").write_text("[agent\n")

    told = tell("list")

    assert (told.status, told.out) == (1, "")
    assert told.err.startswith("The settings cannot be used: ")


def test_whoever_stops_it_gets_no_traceback(tell: Tell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our promise: Ctrl-C is an ordinary end; 130 is what shells call it."""

    def stop(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("acp_server.sessions_cli.open_store", stop)

    assert tell("list") == Told(130, "", "")


@pytest.mark.parametrize(
    "argv", [[], ["no-such"], ["show"], ["delete"], ["export", "x", "--format", "pdf"], ["list", "--js"]]
)
def test_what_it_does_not_know_it_refuses_with_its_usage(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Contracts 13: 2 is the exit status of a wrong usage; a flag is never guessed."""
    with pytest.raises(SystemExit) as refused:
        cli.parse(["sessions", *argv])

    assert refused.value.code == 2
    assert capsys.readouterr().err.startswith("usage: acp-server")


def test_a_session_a_server_has_open_can_be_read_and_not_deleted(
    server: tuple[Editor, str], tell: Tell
) -> None:
    """Issue 3: reading takes no claim; a locked session is refused in words, and is there afterwards."""
    editor, session = server

    listed, shown = tell("list"), tell("show", session[:6])
    checked, refused = tell("check"), tell("delete", session, "--yes")

    assert "Say hello" in listed.out
    assert "you     Say hello\nthinks  Hm.\nagent   Hello.\nended   end_turn\n" in shown.out
    assert checked == Told(0, f"{session}  ok\n", "")
    assert (refused.status, refused.out) == (1, "")
    assert "another" in refused.err
    editor.eof()
    assert editor.wait_exit() == 0
    assert tell("delete", session, "--yes") == Told(0, f"deleted {session}\n", "")


def test_the_program_itself_lists_and_leaves(tmp_path: Path) -> None:
    """Our promise: what the parts do, the program does; and a reader that leaves early is no error."""
    stored(tmp_path, (header(), ordinary()))
    argv = [sys.executable, "-m", "acp_server", "--state-dir", str(tmp_path), "sessions"]

    told = subprocess.run([*argv, "list"], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=30)
    reader, writer = os.pipe()
    os.close(reader)
    left = subprocess.run([*argv, "show", ID], cwd=ROOT, stdout=writer, stderr=subprocess.PIPE, timeout=30)
    os.close(writer)

    assert (told.returncode, told.stderr) == (0, "")
    assert "Mend hello.py" in told.stdout
    assert (left.returncode, left.stderr) == (1, b"")


def test_of_a_change_each_place_is_shown_and_of_a_new_file_everything(tell: Tell, tmp_path: Path) -> None:
    """Issue 3: the demo's way, which shows both texts whole, is no way to read a long file's edit."""
    lines = [f"line {number}\n" for number in range(40)]
    changed = "".join(["first\n", *lines[1:-1], "last\n"])
    edit, new = CardDiff("/f", "".join(lines), changed), CardDiff("/n\x1b[2J", None, "new\n")
    facts = [
        *begin(1, "go"),
        asks(1, "c1", "c2"),
        f.ToolCall(1, 1, "c1", "work", "{}", Card("edit", "files", (edit, new))),
        f.ToolCall(1, 1, "c2", "work", "{}", None),
        f.ToolResult(1, 1, "c2", (), True, "ran", card=Card("other", "nobody was shown this")),
    ]
    stored(tmp_path, (header(ID, None), placed_facts(facts)))

    told = tell("show", ID)

    assert told.out.endswith(
        "tool    edit files: pending\n"
        "        | /f\n        | - line 0\n        | + first\n"
        "        | /f\n        | - line 39\n        | + last\n"
        "        | /n (new file)\n        | + new\n"
    )


def test_a_turn_that_failed_is_shown_with_its_reason(tell: Tell, tmp_path: Path) -> None:
    """Issue 3: stop reasons; a failed turn has none in ACP, so it is told in words."""
    reason = f.EndReason("error", error_kind="rate_limit", message="Wait.")
    stored(tmp_path, (header(ID, None), placed_facts([*begin(1, "go"), *end(1, reason)])))

    assert tell("show", ID).out.endswith("ended   error, rate_limit: Wait.\n")
