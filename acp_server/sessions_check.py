"""Whether a stored session is sound: the invariants, as a tool for people. Reads without a claim."""

from dataclasses import dataclass
from typing import Any, Final, Literal

from agent_loop import AssistantRun, InvariantError, Invariants, LogRow, Store, StoreError, closers

Soundness = Literal["ok", "torn", "broken"]

TORN: Final = "torn tail (repaired when loaded), unless its turn runs now"


@dataclass(frozen=True)
class Finding:
    """What is known of one log.

    Attributes:
        words: All of it in a line: `ok`, the torn tail, or what is broken.
        seq: Place of the fact that breaks a rule, where there is one.
    """

    session_id: str
    state: Soundness
    words: str
    seq: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The finding as `check --json` prints it."""
        value: dict[str, Any] = {"sessionId": self.session_id, "state": self.state, "words": self.words}
        return value if self.seq is None else {**value, "seq": self.seq}


async def check(store: Store, session_id: str) -> Finding:
    """Check one session.

    Raises:
        NotFound: No such session.
    """
    try:
        _, rows = await store.peek(session_id)
    except StoreError as error:
        return Finding(session_id, "broken", f"broken: {error}")
    return check_rows(session_id, rows)


def check_rows(session_id: str, rows: list[LogRow]) -> Finding:
    """Check what was read. An open turn is no fault: a server is at it, or went down and load repairs it."""
    rules = Invariants()
    for row in rows:
        for fact in row.facts_from(row.seq) if isinstance(row, AssistantRun) else (row,):
            try:
                rules.check(fact)
            except InvariantError as error:
                return Finding(session_id, "broken", f"broken: {error}", fact.seq)
    if closers(rows):
        return Finding(session_id, "torn", TORN)
    return Finding(session_id, "ok", "ok")
