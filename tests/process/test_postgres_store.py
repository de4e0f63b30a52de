"""`--store postgresql://…`: one team's sessions, whichever machine they are opened on."""

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.doubles.postgres_server import PASSWORD, PostgresServer, running_server, why_not
from tests.process.server import DONE, OPENED, ROOT, Server

pytest.importorskip("asyncpg", reason="asyncpg is not installed: pip install 'acp-agent-server[postgres]'")


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with TemporaryDirectory(prefix="acp-postgres-") as folder:
        os.chmod(folder, stat.S_IRWXU)
        with running_server(Path(folder)) as running:
            yield running


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.url(postgres.new_database())


def launched(server: Server, folder: Path, url: str) -> Server:
    """A server on another machine, as far as files can tell: all it shares is the database."""
    folder.mkdir()
    other = Server(folder)
    other.cwd = server.cwd
    other.model(DONE, DONE)
    other.launch(flags=("--store", url))
    other.initialize()
    return other


def test_a_session_is_reached_from_two_machines_one_at_a_time(
    server: Server, url: str, tmp_path: Path
) -> None:
    """Issue, PostgreSQL store: locked while open elsewhere, free when its owner is killed."""
    here = launched(server, tmp_path / "here", url)
    session = here.new_session()
    here.run(session, "Mend the roof.")
    there = launched(server, tmp_path / "there", url)

    locked = there.load(session)["error"]
    here.kill()
    while "error" in (answer := there.load(session)):  # the database hears of it a moment later
        assert answer["error"]["data"] == {"kind": "locked"}
    listed = there.editor.call("session/list", {})["result"]["sessions"]

    assert (locked["code"], locked["data"]) == (-32603, {"kind": "locked"})
    assert set(answer["result"]) == OPENED
    assert [(it["sessionId"], it["title"]) for it in listed] == [(session, "Mend the roof.")]
    assert there.run(session)["result"] == {"stopReason": "end_turn"}
    assert not list(here.state.rglob("*.jsonl"))
    assert there.leave() == 0
    here.close()


def test_people_at_a_terminal_look_into_the_database_too(server: Server, url: str, tmp_path: Path) -> None:
    """Issue, sessions at a terminal: on either store."""
    here = launched(server, tmp_path / "here", url)
    session = here.new_session()
    here.run(session, "Mend the roof.")
    assert here.leave() == 0

    def told(command: str) -> str:
        argv = [*here.argv("--store", url), "sessions", command]
        return subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=20, check=True).stdout

    assert "Mend the roof." in told("list")
    assert session[:8] in told("check")


def test_a_database_nobody_answers_at_is_said_in_words(server: Server) -> None:
    """Contracts 5: the person reads what failed, and no password; the server stays."""
    server.model(DONE)
    server.launch(flags=("--store", f"postgresql://me:{PASSWORD}@127.0.0.1:1/none"))
    server.initialize()

    answer = server.editor.call("session/new", {"cwd": str(server.cwd), "mcpServers": []})["error"]

    assert answer["code"] == -32603
    assert answer["data"]["kind"] == "io"
    assert "127.0.0.1:1" in answer["message"]
    assert PASSWORD not in str(answer)
    assert server.leave() == 0


def test_an_address_that_is_none_is_named_and_not_shown(server: Server) -> None:
    """Contracts 11: the flag is named; an address may hold a password, so it is not repeated."""
    server.model(DONE)
    server.launch(flags=("--store", f"mysql://me:{PASSWORD}@db"))
    server.initialize()

    for method in ("session/new", "session/list"):
        answer = server.editor.call(method, {"cwd": str(server.cwd), "mcpServers": []})["error"]
        assert answer["data"]["kind"] == "config"
        assert "--store" in answer["message"]
        assert PASSWORD not in str(answer)
    assert server.leave() == 0
