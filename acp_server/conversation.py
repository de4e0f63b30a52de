"""A stored session as the conversation a person had: turns of what was said and what was done.

Owns what belongs together and that no text in it can act on a terminal. How it looks belongs to the exports.
Pure.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from acp_server.codec.stop_reason import stop_reason
from acp_server.codec.update_out import STOPPED, retry_words
from acp_server.inert import inert, inert_card, one_line
from agent_loop import (
    AssistantChunk,
    AssistantRun,
    Card,
    CardDiff,
    CardText,
    Content,
    EndReason,
    Exit,
    Image,
    LogRow,
    Outcome,
    PermissionDecided,
    ReasoningDelta,
    RequestRetried,
    SessionHeader,
    SessionTitle,
    SteeringMessage,
    Text,
    TextDelta,
    ToolCall,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
    text_of,
    title_from,
)

Speaker = Literal["you", "agent", "thought"]

UNTITLED: Final = "Untitled session"
STILL_OPEN: Final = "not ended: a server is at it, or went down"


@dataclass(frozen=True)
class Said:
    """A message or a thought; `time` is milliseconds since the epoch."""

    speaker: Speaker
    text: str
    time: int


@dataclass(frozen=True)
class Done:
    """A tool call with the newest card there is of it.

    Attributes:
        notes: Who allowed it, how its command ended.
    """

    card: Card
    time: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """One prompt and what came of it; `ended_at` is None while it is open."""

    number: int
    started_at: int
    entries: tuple[Said | Done, ...]
    ending: str
    ended_at: int | None

    @property
    def failed(self) -> bool:
        """Whether it ended neither with an answer nor as the person wished."""
        return self.ending not in ("end_turn", "cancelled")


@dataclass(frozen=True)
class Conversation:
    """A whole session, made by `conversation`."""

    id: str
    title: str
    cwd: str | None
    parent: str | None
    created_at: int
    updated_at: int
    turns: tuple[Turn, ...]


def conversation(header: SessionHeader, rows: Iterable[LogRow]) -> Conversation:
    """The conversation a log tells; of what no person was shown, nothing."""
    tale = _Tale()
    updated_at = header.created_at
    for row in rows:
        tale.take(row)
        updated_at = row.last_time if isinstance(row, AssistantRun) else row.time
    return Conversation(
        header.id,
        tale.title or tale.first_words or UNTITLED,
        None if header.cwd is None else inert(header.cwd),
        header.parent,
        header.created_at,
        updated_at,
        tuple(tale.turns()),
    )


def ending(reason: EndReason) -> str:
    """Why a turn ended: ACP's stop reason where it says it all, else in words."""
    match reason.kind:
        case "interrupted":
            return "interrupted: the server went down"
        case "disposed":
            return "the session was closed"
        case "aborted":
            words = "cancelled" if reason.cause == "client" else f"aborted by {reason.cause}"
            return f"{words}: {one_line(reason.text)}" if reason.text else words
        case "error":
            return f"error, {reason.error_kind or 'unknown'}: {one_line(reason.message)}"
        case _:
            return str(stop_reason(reason))


def diff_lines(diff: CardDiff) -> list[str]:
    """A change line by line: `+` and `-` before what changed, a blank before what surrounds it."""
    if not diff.old:
        return [f"+{line}" for line in diff.new.removesuffix("\n").split("\n")]
    old, new = diff.old, diff.new
    if old.endswith("\n") and new.endswith("\n"):
        old, new = old[:-1], new[:-1]
    return list(difflib.unified_diff(old.split("\n"), new.split("\n"), lineterm=""))[2:]


class _Tale:
    """Takes rows in order."""

    def __init__(self) -> None:
        self.title = ""
        self.first_words = ""
        self._turns: list[Turn] = []
        self._entries: list[Said | Done] = []
        self._calls: dict[str, int] = {}
        self._message: tuple[object, ...] = ()
        self._speaker: Speaker = "you"
        self._pieces: list[str] = []
        self._said_at = 0

    def turns(self) -> list[Turn]:
        """Every turn so far."""
        self._close(STILL_OPEN, None)
        return self._turns

    def take(self, row: LogRow) -> None:
        match row:
            case TurnStart(turn=turn):
                self._close(STILL_OPEN, None)
                self._turns.append(Turn(turn, row.time, (), "", None))
            case TurnEnd(reason=reason):
                self._close(ending(reason), row.time)
            case UserMessage(content=content) | SteeringMessage(content=content):
                self.first_words = self.first_words or inert(title_from(text_of(content)))
                self._say("you", _in_words(content), row.time, (row.seq,))
            case AssistantRun():
                self._hear(row, row.delta, "".join(row.texts))
            case AssistantChunk(chunk=TextDelta() | ReasoningDelta() as delta):
                self._hear(row, type(delta), delta.text)
            case RequestRetried():
                self._say("thought", retry_words(row), row.time, (row.seq,))
            case ToolCall(call_id=call_id, card=card) if card is not None:
                self._full_stop()
                self._calls[call_id] = len(self._entries)
                self._entries.append(Done(inert_card(card), row.time))
            case PermissionDecided(call_id=call_id, by=by):
                self._change(call_id, None, f"{'allowed' if row.allowed else 'denied'} by {by}")
            case ToolResult(call_id=call_id, card=card):
                self._change(call_id, _stopped(card, row.outcome), _exit_in_words(row.exit))
            case SessionTitle(title=title):
                self.title = one_line(title)
            case _:
                pass

    def _hear(self, row: AssistantRun | AssistantChunk, delta: type, text: str) -> None:
        speaker: Speaker = "agent" if delta is TextDelta else "thought"
        self._say(speaker, text, row.time, (row.turn, row.step, row.attempt, speaker))

    def _say(self, speaker: Speaker, text: str, time: int, message: tuple[object, ...]) -> None:
        if message != self._message:
            self._full_stop()
            self._speaker, self._message, self._said_at = speaker, message, time
        self._pieces.append(text)

    def _full_stop(self) -> None:
        """What was being said is complete: something else follows."""
        text = inert("".join(self._pieces)).strip("\n")
        if text.strip():
            self._entries.append(Said(self._speaker, text, self._said_at))
        self._pieces, self._message = [], ()

    def _change(self, call_id: str, card: Card | None, note: str) -> None:
        at = self._calls.get(call_id)
        if at is None:
            return
        done = self._entries[at]
        assert isinstance(done, Done)
        notes = (*done.notes, note) if note else done.notes
        self._entries[at] = Done(done.card if card is None else inert_card(card), done.time, notes)

    def _close(self, words: str, at: int | None) -> None:
        self._full_stop()
        if self._turns and not self._turns[-1].ending:
            self._turns[-1] = replace(
                self._turns[-1], entries=tuple(self._entries), ending=words, ended_at=at
            )
        self._entries, self._calls = [], {}


def _stopped(card: Card | None, outcome: Outcome) -> Card | None:
    """The card a call ended with; one that its turn's end cut off says so, as it did live."""
    if card is None or outcome != "interrupted":
        return card
    return card.with_status("cancelled", (*card.body, CardText(STOPPED)))


def _in_words(content: Iterable[Content]) -> str:
    """What a person said, with a word for each picture they showed."""
    said: list[str] = []
    for block in content:
        if isinstance(block, Image):
            said.append(f"(a picture, {one_line(block.mime_type)})")
        elif isinstance(block, Text):
            said.append(block.text)
    return "\n".join(said)


def _exit_in_words(ended: Exit | None) -> str:
    if ended is None:
        return ""
    if ended.timed_out:
        return "timed out"
    return f"exit {ended.code}" if ended.signal is None else f"killed by {one_line(ended.signal)}"
