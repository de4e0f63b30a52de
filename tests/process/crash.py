"""The places a session can be killed at, and what must hold of its log whatever happened to it.

A place says how to get there and what is known of its turn afterwards: why it ended, what became of each
call, and what the person sees of it. The killing belongs to `test_crash`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from agent_loop.events.facts import (
    AssistantMessage,
    LoggedFact,
    StepStart,
    ToolResult,
    TurnEnd,
    TurnStart,
)
from agent_loop.events.facts_json import fact_from_json
from agent_loop.llm.providers.openai_request import messages_out
from agent_loop.messages import Reasoning, Text, text_of
from agent_loop.session.history import History
from agent_loop.session.invariants import Invariants
from agent_loop.session.repair import NOT_STARTED, UNKNOWN
from tests.doubles.memory_model import CALLS, STOP, Item
from tests.doubles.openai_wire import problem
from tests.goldens.replay import project
from tests.process.server import Server

HOLD: Item = {"hold": "go"}
TITLE = "Mend it."
WORDS = {"skipped": NOT_STARTED, "unknown": UNKNOWN}


def write(call_id: str) -> Item:
    return {"tool": "write", "id": call_id, "args": {"path": f"{call_id}.txt", "content": "x"}}


def sleeper(server: Server, call_id: str) -> Item:
    return {**server.sleeping, "id": call_id}


@dataclass(frozen=True)
class Place:
    """A place in a session's first turn.

    Attributes:
        name: Where it is, in words.
        answer: What the model says on the way; empty when it is not asked.
        reach: Brings a fresh session there.
        ends: How the turn may have ended once the session is loaded; empty when there is none.
        outcomes: What is known of each call, in the model's order.
        cards: What the person sees of each call; a call nobody was shown has no card.
        shown: What must be left of the answer's text and thoughts.
    """

    name: str
    answer: Callable[[Server], Sequence[Item]]
    reach: Callable[[Server, str], object]
    ends: Sequence[str] = ("interrupted",)
    outcomes: Mapping[str, str] = field(default_factory=dict)
    cards: Mapping[str, str] = field(default_factory=dict)
    shown: str = ""

    @property
    def turns(self) -> int:
        """How many turns the session has there."""
        return 1 if self.ends else 0


def says(*items: Item) -> Callable[[Server], Sequence[Item]]:
    return lambda _: items


def nowhere(server: Server, session: str) -> None:
    pass


def held(server: Server, session: str) -> None:
    server.prompt(session, TITLE)
    server.until_held("go")


def stored(words: str, server: Server, session: str) -> None:
    held(server, session)
    server.until_stored(session, words)


def asked(server: Server, session: str) -> None:
    server.prompt(session, TITLE)
    server.editor.wait_request("session/request_permission")


def asked_and_stored(server: Server, session: str) -> None:
    asked(server, session)
    server.until_stored(session, '"permission/asked"')


def sleeping(call_id: str, allowed: int, server: Server, session: str) -> None:
    server.prompt(session, TITLE)
    for _ in range(allowed):
        server.allow()
    server.editor.wait_update({"toolCallId": call_id, "status": "in_progress"}, session)
    server.editor.wait_until(server.children, "the sleeping child")


def answered(server: Server, session: str) -> None:
    assert server.run(session, TITLE)["result"] == {"stopReason": "end_turn"}


def cancelled(server: Server, session: str) -> None:
    prompt = server.prompt(session, TITLE)
    server.until_held("go")
    server.editor.notify("session/cancel", {"sessionId": session})
    assert server.editor.wait_response(prompt)["result"] == {"stopReason": "cancelled"}


WRITTEN = Place(
    "in the middle of the text, once it was written and before it was synced",
    says({"text": "One, "}, {"text": "two"}, HOLD),
    partial(stored, "two"),
    shown="One, two",
)
QUESTION = Place(
    "between a call and its start",
    says({"text": "I write."}, write("c1"), CALLS),
    asked_and_stored,
    outcomes={"c1": "skipped"},
    cards={"c1": "failed"},
    shown="I write.",
)
SEVERAL_CALLS = Place(
    "in the middle of several calls",
    lambda server: [write("c1"), sleeper(server, "c2"), write("c3"), CALLS],
    partial(sleeping, "c2", 2),
    outcomes={"c1": "ran", "c2": "unknown", "c3": "skipped"},
    cards={"c1": "completed", "c2": "failed"},
)
ANSWERED = Place(
    "right after the prompt's answer",
    says({"text": "Done."}, STOP),
    answered,
    ends=("completed",),
    shown="Done.",
)
NEW = Place("right after the answer to session/new", says(), nowhere, ends=())

PLACES = (
    NEW,
    Place("after the prompt's message", says(HOLD), held),
    Place("in the middle of the text", says({"text": "One, "}, {"text": "two"}, HOLD), held),
    WRITTEN,
    Place(
        "in the middle of a thought",
        says({"think": "Let me "}, {"think": "see"}, HOLD),
        partial(stored, "see"),
        shown="Let me see",
    ),
    Place("with a question just asked", says(write("c1"), CALLS), asked),
    QUESTION,
    Place(
        "while a command runs",
        lambda server: [sleeper(server, "c1"), CALLS],
        partial(sleeping, "c1", 1),
        outcomes={"c1": "unknown"},
        cards={"c1": "failed"},
    ),
    SEVERAL_CALLS,
    ANSWERED,
    Place(
        "right after a cancel's answer",
        says({"text": "One"}, HOLD),
        cancelled,
        # The turn was still on its way to the disk.
        ends=("aborted", "interrupted"),
    ),
)


def sound_facts(server: Server, session: str) -> list[LoggedFact]:
    """What is stored, which must keep every rule and be, at each request, a history providers take."""
    facts = [fact_from_json(row) for row in server.facts(session)]
    Invariants().check_all(facts)
    history = History()
    for fact in facts:
        history.fold([fact])
        if isinstance(fact, StepStart):
            messages = messages_out("", history.messages(), returns_reasoning=True)
            assert problem({"messages": messages}) is None
            assert messages[-1]["role"] in ("user", "tool")
    return facts


def turns(facts: Sequence[LoggedFact]) -> list[int]:
    return [fact.turn for fact in facts if isinstance(fact, TurnStart)]


def ends(facts: Sequence[LoggedFact]) -> list[str]:
    return [fact.reason.kind for fact in facts if isinstance(fact, TurnEnd)]


def outcomes(facts: Sequence[LoggedFact]) -> dict[str, str]:
    """What is known of each call; what the model was told of it must say just that."""
    results = [fact for fact in facts if isinstance(fact, ToolResult)]
    for result in results:
        words = text_of(result.content)
        assert words == WORDS.get(result.outcome, words)
        assert result.is_error == (result.outcome != "ran")
    return {result.call_id: result.outcome for result in results}


def said(facts: Sequence[LoggedFact]) -> str:
    """What the model knows of its own words and thoughts."""
    blocks = [block for fact in facts if isinstance(fact, AssistantMessage) for block in fact.content]
    return "".join(block.text for block in blocks if isinstance(block, Text | Reasoning))


def seen_cards(updates: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The final status of every card a replay shows."""
    return {it["toolCallId"]: it["status"] for it in project(updates) if "toolCallId" in it}


def seen_text(updates: Sequence[dict[str, Any]]) -> str:
    return "".join(it.get("text", "") for it in project(updates))
