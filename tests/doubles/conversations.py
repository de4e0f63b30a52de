"""Stored conversations to read: an ordinary one, a hostile one, and a store that holds what a test wants."""

from collections.abc import Sequence
from pathlib import Path

import anyio

from agent_loop import cards, chunks, messages
from agent_loop.events import facts as f
from agent_loop.persistence.jsonl import JsonlStore
from agent_loop.session.header import SessionHeader
from tests.doubles.facts import TIME_MS, placed_facts

ID = "4f2a9c1e-0000-4000-8000-000000000001"
OTHER_ID = "4f2b0000-0000-4000-8000-000000000002"
CWD = "/home/me/project"
OLD = "import sys\n\nprint(sys.argv[1])\n"
NEW = "import sys\n\nprint(sys.argv[1:])\n"
PATH = f"{CWD}/hello.py"
EDIT = cards.Card("edit", "hello.py", (cards.CardDiff(PATH, OLD, NEW),), (cards.Location(PATH, 3),))
COMMAND = cards.Card("execute", "python hello.py", (cards.CardOutput("\x1b[32mhello\x1b[0m\n", True),))
HOSTILE = (
    "</script><script>alert(1)</script></style><img src=https://evil.example/x onerror=alert(1)>"
    "\x1b[31mred\x1b[0m\x1b]0;title\x07 \x1b[2J \x1b \x9b31m \u202elive <details ontoggle=alert(1)> "
    "\" onload='alert(1)' --> "
    "[x](javascript:alert(1)) ![y](https://evil.example/y) **b<b>** `<i>`\n"
    '```"><img src=x onerror=alert(1)>\n</pre><script>alert(2)</script>'
)


def header(session_id: str = ID, cwd: str | None = CWD, parent: str | None = None) -> SessionHeader:
    return SessionHeader(session_id, TIME_MS, cwd, parent)


def begin(turn: int, text: str) -> list[f.LoggedFact]:
    """A turn with its first step, and what the person said."""
    return [
        f.TurnStart(turn, f.Trigger("message", messages.USER), (f"m{turn}",)),
        f.UserMessage(turn, f"m{turn}", (messages.Text(text),), messages.USER),
        f.StepStart(turn, 1),
    ]


def deltas(
    turn: int, kind: type[chunks.TextDelta] | type[chunks.ReasoningDelta], *texts: str
) -> list[f.LoggedFact]:
    return [f.AssistantChunk(turn, 1, 1, kind(0, text)) for text in texts]


def asks(turn: int, *call_ids: str) -> f.LoggedFact:
    """The message in which the model makes these calls."""
    return f.AssistantMessage(
        turn, 1, 1, tuple(messages.ToolCallBlock(call_id, "work", "{}") for call_id in call_ids)
    )


def call(turn: int, call_id: str, card: cards.Card, *, exit_: f.Exit | None = None) -> list[f.LoggedFact]:
    """A call that is allowed, runs and is done."""
    return [
        f.ToolCall(turn, 1, call_id, "work", "{}", card),
        f.PermissionDecided(turn, 1, call_id, True, "user", "allow"),
        f.ToolStarted(turn, 1, call_id),
        f.ToolResult(
            turn, 1, call_id, (messages.Text("ok"),), False, "ran", None, exit_, card.with_status("done")
        ),
    ]


def end(turn: int, reason: f.EndReason | None = None) -> list[f.LoggedFact]:
    return [f.StepEnd(turn, 1), f.TurnEnd(turn, reason or f.EndReason("completed"))]


def ordinary() -> list[f.LoggedFact]:
    """One turn with a thought, an edit, a command and an answer."""
    return placed_facts(
        [
            *begin(1, "Mend hello.py"),
            *deltas(1, chunks.ReasoningDelta, "I should ", "look."),
            *deltas(1, chunks.TextDelta, "Let me **mend**", " it."),
            asks(1, "c1", "c2"),
            *call(1, "c1", EDIT),
            *call(1, "c2", COMMAND, exit_=f.Exit(0)),
            *end(1),
        ]
    )


def hostile() -> list[f.LoggedFact]:
    """One turn in which everything that can be text is hostile."""
    body = (
        cards.CardText(HOSTILE),
        cards.CardCode(HOSTILE, HOSTILE),
        cards.CardOutput(HOSTILE),
        cards.CardDiff(HOSTILE, HOSTILE, f"{HOSTILE}\n{HOSTILE}"),
    )
    places = (cards.Location(HOSTILE, 2),)
    return placed_facts(
        [
            *begin(1, HOSTILE),
            *deltas(1, chunks.ReasoningDelta, HOSTILE),
            *deltas(1, chunks.TextDelta, HOSTILE),
            asks(1, "c1", "c2"),
            *call(1, "c1", cards.Card("other", HOSTILE, body, places), exit_=f.Exit(signal=HOSTILE)),
            *call(1, "c2", cards.Card("other", HOSTILE, (), places, {"k": HOSTILE})),
            *end(1, f.EndReason("error", error_kind="server", message=HOSTILE)),
            f.SessionTitle(HOSTILE, "user"),
        ]
    )


def stored(state: Path, *sessions: tuple[SessionHeader, Sequence[f.LogRow]]) -> Path:
    """Keep these sessions in the real store below `state`, the first one oldest; their logs' folder."""

    async def keep() -> None:
        store = JsonlStore(state)
        for head, rows in sessions:
            await store.create(head)
            await store.append(head.id, rows, first_seq=0, durable=True)
        await store.aclose()

    anyio.run(keep)
    return state / "sessions"
