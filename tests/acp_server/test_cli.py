"""The command line: what it takes, what it refuses, and that it serves when it is told nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from acp_server import __main__ as entry
from acp_server import cli
from acp_server.cli_parser import parse_all

ROOT = Path(__file__).parents[2]
COMMANDS = ([sys.executable, "-m", "acp_server"], [str(Path(sys.executable).with_name("acp-server"))])


def run(*argv: str, command: list[str] = COMMANDS[0], stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*command, *argv],
        cwd=ROOT,
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        timeout=30,
        check=False,
    )


@pytest.mark.parametrize("command", COMMANDS, ids=("python -m", "acp-server"))
def test_both_ways_to_start_it_are_one(command: list[str], tmp_path: Path) -> None:
    """Our promise: `python -m acp_server` and `acp-server` are the same program."""
    hello = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}\n'

    version = run("--version", command=command)
    served = run("--state-dir", str(tmp_path), command=command, stdin=hello)

    assert (version.returncode, version.stderr) == (0, "")
    assert version.stdout.startswith("acp-server 0.")
    assert (served.returncode, served.stderr) == (0, "")
    assert '"protocolVersion":1' in served.stdout


def test_help_names_every_flag_and_command() -> None:
    """Our promise: what can be set can be found."""
    told = run("--help")

    assert (told.returncode, told.stderr) == (0, "")
    flags = [f"--{name.replace('_', '-')}" for name in (*cli.FLAGS, "state_dir", "version")]
    assert [word for word in (*flags, "demo", "trace-to-golden") if word not in told.stdout] == []


@pytest.mark.parametrize(
    "argv", [["--no-such"], ["no-such"], ["trace-to-golden"], ["--model"], ["demo", "now"]], ids=" ".join
)
def test_what_it_does_not_know_it_refuses_with_its_usage_on_stderr(argv: list[str]) -> None:
    """Contracts 13: stdout is the protocol, for nothing else; 2 is the exit status of a wrong usage."""
    refused = run(*argv)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("usage: acp-server")


def test_a_flag_is_never_guessed_from_its_beginning() -> None:
    """Our promise: a flag added later must not change what an editor's settings mean today."""
    assert run("--mod", "demo/tour").returncode == 2


@pytest.mark.parametrize(
    ("argv", "status"), [(["--version"], 0), (["trace-to-golden", "none", "made"], 1), (["demo"], 3)]
)
def test_a_command_s_result_is_the_exit_status(
    argv: list[str], status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Our promise: scripts can tell success from failure."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["acp-server", *argv])
    monkeypatch.setattr("acp_server.demo.demo", lambda: 3)

    assert entry.main() == status


def test_windows_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Contracts 13: platforms are Linux and macOS; Windows is refused in words."""
    monkeypatch.setattr(sys, "argv", ["acp-server"])
    monkeypatch.setattr(sys, "platform", "win32")

    assert entry.main() == 1
    assert "use it inside WSL" in capsys.readouterr().err


def test_parsing_imports_nothing_that_could_print() -> None:
    """Contracts 13: the entry point is stdlib-only until the guard stands."""
    heavy = "[name for name in sys.modules if name.split('.')[0] in ('orjson', 'anyio', 'agent_loop')]"
    code = f"import sys, acp_server.__main__; print({heavy})"

    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8", timeout=30, check=True
    )

    assert loaded.stdout == "[]\n"


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--model", "openai/x"],
        ["--model=openai/x", "--state-dir", "a b", "--sandbox", "off", "--log-level="],
        ["--model", "a/b", "--model", "c/d"],
    ],
    ids=" ".join,
)
def test_what_an_editor_says_is_read_as_the_parser_reads_it(argv: list[str]) -> None:
    """Our promise: the short way for a start is the same grammar."""
    assert cli._plain(argv) is not None
    assert vars(cli.parse(argv)) == vars(parse_all(argv))


@pytest.mark.parametrize("line", ["--help", "--model", "--model --store", "--mod x", "demo", "x=y"])
def test_everything_else_is_the_parsers(line: str) -> None:
    """Our promise: mistakes, help and commands are told apart in one place."""
    assert cli._plain(line.split()) is None
