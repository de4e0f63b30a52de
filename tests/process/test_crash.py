"""Kill -9 at any place of a turn: the session loads in a new process, closed, and goes on.

claude-agent-acp#130, opencode#30643, zed#63868: a session could not be reopened after a restart.
"""

from collections.abc import Sequence
from typing import Any

import pytest
from anyio import to_thread

from agent_loop.chunks import Finish, TextDelta
from tests.doubles.memory_model import CALLS, Item
from tests.doubles.openai_wire import events_of, problem
from tests.doubles.provider_server import Reply, provider_server
from tests.goldens.faults import transcript_faults
from tests.process.crash import (
    ANSWERED,
    NEW,
    PLACES,
    QUESTION,
    SEVERAL_CALLS,
    TITLE,
    WRITTEN,
    Place,
    asked_and_stored,
    ends,
    outcomes,
    said,
    seen_cards,
    seen_text,
    sound_facts,
    turns,
    write,
)
from tests.process.server import DONE, Server

AGAIN: list[Item] = [{"text": "Where was I"}, {"hold": "again"}]


def crashed_at(place: Place, server: Server, *answers: Sequence[Item]) -> str:
    """A session whose server was killed there; the model has these answers for later."""
    on_the_way = place.answer(server)
    server.start(*[on_the_way] * bool(on_the_way), *answers, directed=True)
    server.initialize()
    session = server.new_session()
    try:
        place.reach(server, session)
        server.kill()
    finally:
        server.end_orphans()
    return session


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_a_session_killed_anywhere_loads_closed_and_goes_on(place: Place, server: Server) -> None:
    """Scenarios B25, B27: every card has ended, the model is told what is known, the next prompt works."""
    session = crashed_at(place, server, DONE)

    server.restart()
    replayed = server.replay(session)
    repaired = sound_facts(server, session)
    listed = server.listed()
    answer = server.run(session, "Go on.")

    assert (ends(repaired) or [""])[0] in (place.ends or [""])
    assert outcomes(repaired) == place.outcomes
    assert seen_cards(replayed) == place.cards
    assert place.shown in seen_text(replayed)
    assert place.shown in said(repaired)
    assert {key: it["title"] for key, it in listed.items()} == dict.fromkeys([session] * place.turns, TITLE)
    assert answer["result"] == {"stopReason": "end_turn"}
    assert server.leave() == 0
    assert turns(sound_facts(server, session)) == list(range(1, place.turns + 2))
    assert transcript_faults(server.editor.transcript) == []


@pytest.mark.parametrize("place", [NEW, WRITTEN, QUESTION, ANSWERED], ids=lambda place: place.name)
def test_a_repaired_session_may_be_killed_again(place: Place, server: Server) -> None:
    """Our promise: a second crash is no worse than the first."""
    session = crashed_at(place, server, AGAIN, DONE)
    server.restart()
    server.load(session)
    server.prompt(session, "Go on.")
    server.until_held("again")
    server.until_stored(session, "Where was I")
    server.kill()

    server.restart()
    replayed = server.replay(session)
    answer = server.run(session, "And now?")

    assert answer["result"] == {"stopReason": "end_turn"}
    assert seen_text(replayed).endswith("Where was I")
    assert server.leave() == 0
    facts = sound_facts(server, session)
    assert turns(facts) == list(range(1, place.turns + 3))
    assert ends(facts)[-2:] == ["interrupted", "completed"]
    assert transcript_faults(server.editor.transcript) == []


def test_a_loaded_session_nothing_was_asked_of_keeps_its_log(server: Server) -> None:
    """Decision 15: the repair is made once; to load, to leave and to load again change nothing more."""
    session = crashed_at(WRITTEN, server)
    server.restart()
    server.load(session)
    repaired = server.log(session).read_bytes()

    assert server.leave() == 0
    server.restart()
    server.load(session)
    assert server.leave() == 0

    assert server.log(session).read_bytes() == repaired
    assert ends(sound_facts(server, session)) == ["interrupted"]


@pytest.mark.parametrize("place", [WRITTEN, QUESTION, ANSWERED], ids=lambda place: place.name)
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.99])
def test_a_torn_last_row_is_left_out(kept: float, place: Place, server: Server) -> None:
    """Contracts 1: only those bytes are cut; whatever is whole before them stays."""
    session = crashed_at(place, server, DONE)
    *whole, last = server.log(session).read_bytes().splitlines(keepends=True)
    # At least the row's first byte is there, and its newline is not.
    torn = last[: 1 + int(kept * (len(last) - 2))]
    server.log(session).write_bytes(b"".join([*whole, torn]))

    server.restart()
    server.load(session)
    repaired = server.log(session).read_bytes()
    answer = server.run(session, "Go on.")

    assert repaired.startswith(b"".join(whole))
    assert torn not in repaired.splitlines()
    assert answer["result"] == {"stopReason": "end_turn"}
    assert server.leave() == 0
    facts = sound_facts(server, session)
    assert (turns(facts), ends(facts)) == ([1, 2], [place.ends[0], "completed"])


def test_a_command_outlives_a_killed_server_and_holds_nothing_of_its_session(server: Server) -> None:
    """A killed server ends nobody; what it left running keeps neither the lock nor the next turn back."""
    server.start([server.sleeping, CALLS], DONE, directed=True)
    server.initialize()
    try:
        session = server.run_the_sleeper()
        server.kill()
        orphans = server.children()

        server.restart()
        server.load(session)
        answer = server.run(session, "Go on.")

        assert orphans
        assert server.children() == orphans
        assert answer["result"] == {"stopReason": "end_turn"}
        assert outcomes(sound_facts(server, session)) == {"c1": "unknown"}
        assert server.leave() == 0
    finally:
        server.end_orphans()


def test_a_session_that_ended_with_its_server_says_disposed_and_is_not_repaired(server: Server) -> None:
    """Contracts 1: `disposed` is an end we wrote, `interrupted` one we found."""
    server.start([write("c1"), CALLS], DONE, directed=True)
    server.initialize()
    session = server.new_session()
    asked_and_stored(server, session)
    assert server.leave() == 0
    left = server.log(session).read_bytes()

    server.restart()
    replayed = server.replay(session)

    assert server.log(session).read_bytes() == left
    assert ends(sound_facts(server, session)) == ["disposed"]
    assert seen_cards(replayed) == {"c1": "failed"}
    assert server.run(session, "Go on.")["result"] == {"stopReason": "end_turn"}
    assert server.leave() == 0


@pytest.mark.parametrize(
    ("was", "now", "kind", "words"),
    [
        (b'"type":"user/message"', b'"type":"user/message', "corrupt", "is damaged at row 3"),
        (b'"type":"step/end"', b'"type":"step/rest"', "version", "holds 'step/rest'"),
        (b'"version":1', b'"version":2', "version", "has version 2; this server reads 1"),
    ],
    ids=["damage before a whole turn", "a row of a newer version", "a header of a newer version"],
)
def test_a_log_nobody_can_repair_is_refused_in_words_and_left_alone(
    was: bytes, now: bytes, kind: str, words: str, server: Server
) -> None:
    """Contracts 1: refused in words; the file stays for whoever can read it, and new sessions are made."""
    session = crashed_at(ANSWERED, server, DONE)
    path = server.log(session)
    path.write_bytes(path.read_bytes().replace(was, now, 1))
    left = path.read_bytes()
    server.restart()

    error = server.load(session)["error"]

    assert (error["code"], error["data"]) == (-32603, {"kind": kind})
    assert words in error["message"]
    assert path.read_bytes() == left
    assert server.new_session() != session
    assert server.leave() == 0


async def test_the_request_after_a_crash_is_one_a_real_endpoint_takes(server: Server) -> None:
    """Our promise: whatever a crash cut off, each call has its result right behind it."""
    async with provider_server(problem) as endpoint:
        endpoint.plan(Reply(events_of([TextDelta(0, "I look."), Finish("stop")])))
        local = {"kind": "openai", "base_url": endpoint.base_url}

        def crash_and_go_on() -> dict[str, Any]:
            session = crashed_at(SEVERAL_CALLS, server)
            server.settings({"format": 1, "agent": {"model": "local/m"}, "providers": {"local": local}})
            server.restart()
            server.load(session)
            return server.run(session, "Go on.")

        answer = await to_thread.run_sync(crash_and_go_on)

    assert answer["result"] == {"stopReason": "end_turn"}
    [request] = endpoint.requests
    said = [(it["role"], it.get("tool_call_id") or it["content"]) for it in request.body["messages"][1:]]
    calls = [("tool", "c1"), ("tool", "c2"), ("tool", "c3")]
    assert said == [("user", TITLE), ("assistant", None), *calls, ("user", "Go on.")]
    assert server.leave() == 0
