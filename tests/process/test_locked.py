"""Two servers on one state directory: a session is open in one of them, and whoever comes second is told."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.doubles.memory_model import Item
from tests.process.crash import sound_facts
from tests.process.server import DONE, OPENED, Server

STREAM: list[Item] = [{"text": "One, "}, {"text": "two"}, {"hang": True}]


def with_a_session(server: Server, *answers: Sequence[Item]) -> str:
    """A running server that has one session open."""
    server.start(*answers)
    server.initialize()
    return server.new_session()


def ask(server: Server, method: str, session: str) -> dict[str, Any]:
    """The answer to a request that opens, forks or deletes a session."""
    params = {"sessionId": session, "cwd": str(server.cwd), "mcpServers": []}
    return dict(server.editor.call(method, params))


@pytest.mark.parametrize("method", ["session/load", "session/resume", "session/delete"])
def test_a_session_open_elsewhere_is_refused_in_words_and_not_disturbed(method: str, server: Server) -> None:
    """Contracts 5: a locked session is -32603 with `data {kind: "locked"}`; nothing of it is touched."""
    session = with_a_session(server, DONE, DONE)
    server.run(session)
    other = server.beside()
    before = server.log(session).read_bytes()

    errors = [ask(other, method, session)["error"] for _ in range(2)]

    assert [(error["code"], error["data"]) for error in errors] == [(-32603, {"kind": "locked"})] * 2
    assert f"{session} is open in another process" in errors[0]["message"]
    assert server.log(session).read_bytes() == before
    assert session in other.listed()
    assert server.run(session)["result"] == {"stopReason": "end_turn"}
    assert [server.leave(), other.leave()] == [0, 0]
    assert len(server.ends(session)) == 2


def test_a_session_is_open_from_the_answer_to_session_new_on(server: Server) -> None:
    """Our promise: the claim is as old as the id."""
    session = with_a_session(server)
    other = server.beside()

    assert other.load(session)["error"]["data"] == {"kind": "locked"}
    assert [server.leave(), other.leave()] == [0, 0]


def test_the_lock_dies_with_its_owner_and_the_survivor_repairs(server: Server) -> None:
    """Our promise: a crash never locks anybody out, and the one who waited finds a closed turn."""
    session = with_a_session(server, STREAM)
    server.prompt(session)
    server.until_stored(session, "two")
    server.model(DONE)
    other = server.beside()
    assert other.load(session)["error"]["data"] == {"kind": "locked"}

    server.kill()
    replayed = other.replay(session)

    assert [it["content"]["text"] for it in replayed if "content" in it] == ["Hello.", "One, two"]
    assert other.run(session)["result"] == {"stopReason": "end_turn"}
    assert other.leave() == 0
    sound_facts(other, session)
    assert [end["kind"] for end in other.ends(session)] == ["interrupted", "completed"]


@pytest.mark.parametrize("how", ["close", "leave"])
def test_a_session_that_was_closed_is_free_at_once(how: str, server: Server) -> None:
    """ACP, session/close: what the session holds is freed, when the answer is here."""
    session = with_a_session(server, DONE)
    server.run(session)
    other = server.beside()

    if how == "close":
        assert server.editor.call("session/close", {"sessionId": session})["result"] == {}
    else:
        assert server.leave() == 0

    assert set(other.load(session)["result"]) == OPENED
    assert other.run(session)["result"] == {"stopReason": "end_turn"}
    if how == "close":
        assert server.load(session)["error"]["data"] == {"kind": "locked"}
        assert server.leave() == 0
    assert other.leave() == 0


def test_a_refused_load_keeps_nothing_that_locks_the_owner_out(server: Server) -> None:
    """Our promise: the owner may close and come back, however often others asked meanwhile."""
    session = with_a_session(server, DONE)
    server.run(session)
    other = server.beside()
    assert other.load(session)["error"]["data"] == {"kind": "locked"}

    server.editor.call("session/close", {"sessionId": session})

    assert set(server.load(session)["result"]) == OPENED
    assert [server.leave(), other.leave()] == [0, 0]


def test_a_fork_needs_no_lock(server: Server) -> None:
    """ACP draft, session/fork: the parent is only read; its open turn is not part of the child."""
    session = with_a_session(server, DONE, STREAM)
    server.run(session)
    server.prompt(session)
    server.until_stored(session, "two")
    server.model(DONE)
    other = server.beside()

    child = ask(other, "session/fork", session)["result"]["sessionId"]

    assert other.run(child)["result"] == {"stopReason": "end_turn"}
    assert [server.leave(), other.leave()] == [0, 0]
    sound_facts(other, child)
    assert [end["kind"] for end in other.ends(child)] == ["completed", "completed"]
