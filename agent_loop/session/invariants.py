"""What every session log must obey, checked fact by fact.

1. Facts are numbered from 0 without gaps.
2. Turns are numbered from 1 without gaps; one is open at a time; turn and step facts lie in an open turn.
3. Steps are numbered from 1 within their turn; one is open at a time; step facts name the open turn and step.
4. A call's `tool/call` comes before its `tool/started` and its `tool/result`, one each; ids are unique.
5. A closed step owes no results: every call the model made in it has one.
6. Facts with a message id name one the turn's start announced, or are steering.

Pure: usable as a test oracle, by a debugging plugin, and on stored logs.
"""

from collections.abc import Iterable

from agent_loop.events.facts import (
    AssistantMessage,
    LoggedFact,
    StepEnd,
    StepStart,
    ToolCall,
    ToolResult,
    ToolStarted,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from agent_loop.messages import ToolCallBlock


class InvariantError(AssertionError):
    """A log broke a rule; the message names the fact's place and the rule's number."""


class Invariants:
    """The rules, applied to one log from its start."""

    def __init__(self) -> None:
        self._next_seq = 0
        self._turn = 0
        self._turn_open = False
        self._step = 0
        self._step_open = False
        self._announced: tuple[str, ...] = ()
        self._owed: set[str] = set()
        self._calls: dict[str, str] = {}

    def check_all(self, facts: Iterable[LoggedFact]) -> None:
        """Check a whole log that is at rest: besides the rules, nothing may be open at its end."""
        for fact in facts:
            self.check(fact)
        if self._turn_open:
            raise InvariantError(f"at the end: turn {self._turn} was never closed (rule 2)")

    def check(self, fact: LoggedFact) -> None:
        """Check the next fact.

        Raises:
            InvariantError: It breaks a rule.
        """
        self._require(fact.seq == self._next_seq, fact, 1, f"expected number {self._next_seq}")
        self._next_seq += 1
        match fact:
            case TurnStart(turn=turn, message_ids=ids):
                self._require(not self._turn_open, fact, 2, f"turn {self._turn} is still open")
                self._require(turn == self._turn + 1, fact, 2, f"expected turn {self._turn + 1}")
                self._turn, self._turn_open, self._step, self._announced = turn, True, 0, ids
            case TurnEnd():
                self._in_turn(fact)
                self._require(not self._step_open, fact, 3, f"step {self._step} is still open")
                self._turn_open = False
            case StepStart(step=step):
                self._in_turn(fact)
                self._require(not self._step_open, fact, 3, f"step {self._step} is still open")
                self._require(step == self._step + 1, fact, 3, f"expected step {self._step + 1}")
                self._step, self._step_open = step, True
            case StepEnd():
                self._in_step(fact)
                self._require(not self._owed, fact, 5, f"no result for {sorted(self._owed)}")
                self._step_open = False
            case _ if fact.SCOPE == "step":
                self._in_step(fact)
                self._check_calls(fact)
            case _ if fact.SCOPE == "turn":
                self._in_turn(fact)
                if isinstance(fact, UserMessage):
                    self._require(fact.id in self._announced, fact, 6, f"{fact.id} was not announced")
            case _:
                pass

    def _check_calls(self, fact: LoggedFact) -> None:
        match fact:
            case AssistantMessage(content=content):
                for block in content:
                    if isinstance(block, ToolCallBlock):
                        known = block.id in self._calls or block.id in self._owed
                        self._require(not known, fact, 4, f"call id {block.id} is taken")
                        self._owed.add(block.id)
            case ToolCall(call_id=call_id):
                self._require(call_id in self._owed, fact, 4, f"the model made no call {call_id}")
                self._require(call_id not in self._calls, fact, 4, f"call {call_id} is logged already")
                self._calls[call_id] = "called"
            case ToolStarted(call_id=call_id):
                self._require(
                    self._calls.get(call_id) == "called", fact, 4, f"call {call_id} cannot start here"
                )
                self._calls[call_id] = "started"
            case ToolResult(call_id=call_id):
                state = self._calls.get(call_id)
                self._require(state in ("called", "started"), fact, 4, f"call {call_id} cannot end here")
                self._calls[call_id] = "ended"
                self._owed.discard(call_id)
            case _:
                pass

    def _in_turn(self, fact: LoggedFact) -> None:
        turn = getattr(fact, "turn", self._turn)
        self._require(self._turn_open and turn == self._turn, fact, 2, "it lies outside its turn")

    def _in_step(self, fact: LoggedFact) -> None:
        self._in_turn(fact)
        step = getattr(fact, "step", self._step)
        self._require(self._step_open and step == self._step, fact, 3, "it lies outside its step")

    def _require(self, holds: bool, fact: LoggedFact, rule: int, why: str) -> None:
        if not holds:
            raise InvariantError(f"fact {fact.seq} {fact.TYPE}: {why} (rule {rule})")
