"""A disk that fails under a running server: told once in words, and nothing is lost when it recovers."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial

import pytest

from agent_loop.events.facts import ToolResult
from tests.doubles.memory_model import CALLS, STOP
from tests.process.crash import HOLD, QUESTION, sound_facts, write
from tests.process.disk import folder_gone, kinds, log_out_of_reach, news, no_growth, with_a_turn
from tests.process.server import DONE, OPENED, Server

Failing = Callable[[Server, str], AbstractContextManager[None]]
WAYS: dict[str, Failing] = {
    "no file may grow": no_growth,
    "half a row fits": partial(no_growth, more_bytes=40),
    "the folder is gone": folder_gone,
    "the log is out of reach": log_out_of_reach,
}
ways = pytest.mark.parametrize("failing", WAYS.values(), ids=WAYS.keys())


@ways
def test_a_failing_disk_is_told_once_and_nothing_is_lost_when_it_recovers(
    failing: Failing, server: Server
) -> None:
    """Our promise: the session goes on in memory; the next turn brings what the failing ones could not."""
    session = with_a_turn(server, DONE, DONE, DONE)
    before = server.log(session).read_bytes()

    with failing(server, session):
        told = [news(server.run(session, text)) for text in ("two", "three")]
    told.append(news(server.run(session, "four")))

    [[warning], *others] = told
    assert "could not be saved to disk" in warning
    assert "The session goes on in memory." in warning
    assert others == [[], []]
    assert server.log(session).read_bytes().startswith(before)
    assert kinds(server, session) == ["completed"] * 4
    assert server.leave() == 0
    assert server.editor.stderr == ""
    assert kinds(server, session) == ["completed"] * 4


def test_a_disk_that_fails_again_is_told_again(server: Server) -> None:
    """Our promise: once for each time it stops, not once for ever."""
    session = with_a_turn(server, DONE, DONE, DONE)

    with no_growth(server, session):
        first = news(server.run(session))
    well = news(server.run(session))
    with no_growth(server, session):
        second = news(server.run(session))

    assert (len(first), well, second) == (1, [], first)
    assert server.leave() == 0
    assert kinds(server, session) == ["completed"] * 4


@ways
def test_what_a_recovered_disk_was_brought_survives_a_crash(failing: Failing, server: Server) -> None:
    """Our promise: after the answer of a saved turn, every earlier one is on disk too."""
    session = with_a_turn(server, DONE, DONE, DONE)
    with failing(server, session):
        server.run(session)
    assert news(server.run(session)) == []

    server.kill()
    server.restart()
    server.load(session)

    assert kinds(server, session) == ["completed"] * 3
    assert server.run(session)["result"] == {"stopReason": "end_turn"}
    assert server.leave() == 0


@ways
def test_a_server_killed_on_a_failing_disk_leaves_a_whole_log(failing: Failing, server: Server) -> None:
    """Our promise: what could not be saved is lost, and was told of; what was saved before is not touched."""
    session = with_a_turn(server, DONE, DONE)
    with failing(server, session):
        assert len(news(server.run(session))) == 1
        server.kill()

    server.restart()
    server.load(session)

    assert kinds(server, session) == ["completed"]
    assert server.run(session)["result"] == {"stopReason": "end_turn"}
    assert server.leave() == 0
    assert kinds(server, session) == ["completed"] * 2


@ways
def test_a_disk_that_recovers_before_the_server_leaves_gets_everything(
    failing: Failing, server: Server
) -> None:
    """Our promise: the last flush brings what no turn's could."""
    session = with_a_turn(server, DONE, DONE)

    with failing(server, session):
        server.run(session)
        server.run(session)
    assert server.leave() == 0

    assert kinds(server, session) == ["completed"] * 3


@ways
def test_a_server_leaves_a_failing_disk_in_time(failing: Failing, server: Server) -> None:
    """Contracts 13: the end is bounded, and the log is whole."""
    # What it had measured would be written to that disk as well.
    server.env = server.unmeasured()
    session = with_a_turn(server, DONE)

    with failing(server, session):
        server.run(session)
        assert server.leave() == 0

    assert kinds(server, session) == ["completed"]
    assert server.editor.stderr == ""


def test_a_disk_that_recovers_gets_everything_without_another_prompt(server: Server) -> None:
    """Our promise: a crash tomorrow takes nothing that the disk could have had since today."""
    session = with_a_turn(server, [{"text": "Kept."}, STOP])
    told = server.state / "log" / "acp-server.log"

    with folder_gone(server, session):
        assert len(news(server.run(session))) == 1
        server.until(
            lambda: told.exists() and "kept in memory" in told.read_text(), "the write-behind's failure"
        )

    server.until_stored(session, "Kept.")
    server.until_stored(session, '"turn":2,"reason"')
    assert server.leave() == 0


def test_a_command_that_cannot_be_recorded_first_is_not_started(server: Server) -> None:
    """Contracts 2: a failed checkpoint gives `skipped`; nothing is both unlogged and done."""
    session = with_a_turn(server, [write("c1"), CALLS], DONE)

    with no_growth(server, session):
        prompt = server.prompt(session)
        server.allow()
        answer = server.editor.wait_response(prompt)

    assert answer["result"]["stopReason"] == "end_turn"
    assert len(news(answer)) == 1
    assert list(server.cwd.iterdir()) == []
    assert server.leave() == 0
    [result] = [fact for fact in sound_facts(server, session) if isinstance(fact, ToolResult)]
    assert (result.outcome, result.error_code) == ("skipped", "CHECKPOINT")


def test_a_disk_that_recovers_in_the_middle_of_a_turn_was_no_news(server: Server) -> None:
    """Our promise: a person hears of turns that are not saved, not of attempts."""
    session = with_a_turn(server, [{"text": "One"}, HOLD, {"text": ", two"}, STOP])

    with no_growth(server, session):
        prompt = server.prompt(session)
        server.until_held("go")
    assert server.control is not None
    server.control.release("go")

    assert news(server.editor.wait_response(prompt)) == []
    assert kinds(server, session) == ["completed"] * 2
    assert server.leave() == 0


def test_a_session_that_cannot_be_made_is_refused_and_leaves_nothing(server: Server) -> None:
    """Contracts 5: -32603 in words; the next one, on a well disk, is made."""
    session = with_a_turn(server, DONE)
    logs = server.log(session).parent
    files = sorted(logs.iterdir())

    with no_growth(server, session, -server.log(session).stat().st_size):
        error = server.editor.call("session/new", {"cwd": str(server.cwd), "mcpServers": []})["error"]

    assert (error["code"], error["data"]) == (-32603, {"kind": "io"})
    assert "Could not create the log of session" in error["message"]
    assert sorted(logs.iterdir()) == files
    assert server.new_session()
    assert server.leave() == 0


def test_a_repair_that_cannot_be_written_is_refused_and_made_later(server: Server) -> None:
    """Store seam, repair: durably, or the load fails in words and the log stays as the crash left it."""
    server.start(QUESTION.answer(server), DONE, directed=True)
    server.initialize()
    session = server.new_session()
    QUESTION.reach(server, session)
    server.kill()
    left = server.log(session).read_bytes()
    server.restart()

    with no_growth(server, session):
        error = server.load(session)["error"]
    untouched = server.log(session).read_bytes()
    loaded = server.load(session)

    assert (error["code"], error["data"]) == (-32603, {"kind": "io"})
    assert untouched == left
    assert set(loaded["result"]) == OPENED
    assert server.run(session)["result"] == {"stopReason": "end_turn"}
    assert server.leave() == 0
    assert kinds(server, session) == ["interrupted", "completed"]


def test_a_whole_session_loads_from_a_disk_that_takes_nothing(server: Server) -> None:
    """Our promise: yesterday's thread can be read while the disk is full."""
    session = with_a_turn(server, DONE)
    server.kill()
    server.restart()

    with no_growth(server, session):
        replayed = server.replay(session)
        told = news(server.run(session))

    assert [it["content"]["text"] for it in replayed if "content" in it] == ["Hello.", "Done."]
    assert len(told) == 1
    assert server.leave() == 0
    assert kinds(server, session) == ["completed"] * 2
