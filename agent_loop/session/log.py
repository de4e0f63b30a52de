"""The session log: append-only, the only writer of facts, the one truth about a session.

Rules.
1. `append` pushes first, then tells every observer in the order of `seq`, then raises the first
   exception an observer raised. No observer misses a fact because of another.
2. An append made by an observer is pushed at once and told by the outermost append, so that every
   observer sees facts in order.
3. Runs of text or reasoning deltas of one block are kept as one `AssistantRun`: an object per delta
   costs a garbage-collector pause of 33 ms per 100,000. Whoever iterates sees the deltas.
4. Whoever must not slow an append (the recorder) is woken and reads by cursor instead.
"""

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agent_loop.chunks import ReasoningDelta, TextDelta
from agent_loop.clock import Clock, wall_clock
from agent_loop.events.bus import Disposer
from agent_loop.events.contain import StrayCancel
from agent_loop.events.facts import (
    AssistantChunk,
    AssistantMessage,
    AssistantRun,
    Cost,
    LoggedFact,
    LogRow,
    SessionMode,
    SessionModel,
    SessionTitle,
    StepEnd,
    StepStart,
    TurnEnd,
    TurnStart,
    UsageRecorded,
)
from agent_loop.events.facts_json import placed
from agent_loop.messages import ToolCallBlock

Observer = Callable[[LoggedFact], object]


class SessionLog:
    """Facts of one session.

    Attributes:
        last_turn: Number of the newest turn, 0 before the first.
        open_turn: Number of the turn that has no `turn/end` yet, else None.
        open_step: Number of the step that has no `step/end` yet, else None.
        title: The newest `session/title`, None before the first.
        cost: That of the newest model call with a price, None before the first.
        mode: The newest `session/mode`, None before the first.
        model: The newest `session/model`, None before the first.
        call_ids: Ids of every tool call the model made; a new call must not reuse one.
    """

    def __init__(self, seed: Sequence[LogRow] = (), *, clock: Clock = wall_clock) -> None:
        """Start from stored facts, which are told to nobody.

        Raises:
            ValueError: Seed fact i is not at place i.
        """
        self._clock = clock
        self._rows: list[LogRow] = []
        self._seqs: list[int] = []
        self._next_seq = 0
        self._run: AssistantRun | None = None
        self._observers: tuple[Observer, ...] = ()
        self._wakers: list[Callable[[], object]] = []
        self._notifying = False
        self._backlog: deque[LoggedFact] = deque()
        self.last_turn = 0
        self.open_turn: int | None = None
        self.open_step: int | None = None
        self.call_ids: set[str] = set()
        self.title: SessionTitle | None = None
        self.cost: Cost | None = None
        self.mode: SessionMode | None = None
        self.model: SessionModel | None = None
        for fact in seed:
            if fact.seq != self._next_seq:
                raise ValueError(f"seed fact at place {self._next_seq} says it is number {fact.seq}")
            self._plant(fact)

    @property
    def next_seq(self) -> int:
        """The place the next fact will get: how many facts there are."""
        return self._next_seq

    def append(self, fact: LoggedFact) -> None:
        """Log a fact; stamps its `seq` and `time`.

        Raises:
            Exception: The first one an observer raised; the fact is logged all the same.
        """
        time = self._clock()
        if type(fact) is AssistantChunk:
            # One per delta: `placed` and a match statement would cost as much as all the rest.
            fact.seq = self._next_seq
            fact.time = time
            # What `_push_chunk` does nearly always, without the call. Any: of the run's class, it has a text.
            run = self._run
            chunk: Any = fact.chunk
            if (
                run is not None
                and type(chunk) is run.delta
                and chunk.index == run.index
                and fact.attempt == run.attempt
            ):
                run.texts.append(chunk.text)
                run.dt_ms.append(time - run.last_time)
                run.last_time = time
            else:
                self._push_chunk(fact, time)
        else:
            placed(fact, self._next_seq, time)
            self._push(fact)
        self._next_seq += 1

        if self._wakers:
            self._wake()
        if self._notifying:
            self._backlog.append(fact)
        elif self._observers:
            self._notify(fact)

    def observe(self, observer: Observer, *, prepend: bool = False) -> Disposer:
        """Tell `observer` of every fact from now on, inside the append."""

        self._observers = (observer, *self._observers) if prepend else (*self._observers, observer)
        gone = False

        def dispose() -> None:
            nonlocal gone
            if not gone:
                gone = True
                at = self._observers.index(observer)
                self._observers = (*self._observers[:at], *self._observers[at + 1 :])

        return dispose

    def wake_once(self, wake: Callable[[], object]) -> None:
        """Call `wake` at the next append, before observers; it must be cheap and must not raise."""
        self._wakers.append(wake)

    def since(self, seq: int) -> Iterator[LoggedFact]:
        """The facts from place `seq` on; a place inside a run is fine."""
        for at in range(max(bisect_right(self._seqs, seq) - 1, 0), len(self._rows)):
            row = self._rows[at]
            if isinstance(row, AssistantRun):
                yield from row.facts_from(seq)
            elif row.seq >= seq:
                yield row

    def rows_since(self, seq: int) -> Iterator[LogRow]:
        """Like `since`, with deltas left in their runs; of a run that began earlier, only the rest.

        The runs are the reader's own: one that still grows here stays as it was.
        """
        for at in range(max(bisect_right(self._seqs, seq) - 1, 0), len(self._rows)):
            row = self._rows[at]
            if isinstance(row, AssistantRun):
                if (rest := row.rest_from(seq)) is not None:
                    yield rest
            elif row.seq >= seq:
                yield row

    def __iter__(self) -> Iterator[LoggedFact]:
        return self.since(0)

    def _plant(self, fact: LogRow) -> None:
        if isinstance(fact, AssistantRun):
            self._run = None
            self._rows.append(fact)
            self._seqs.append(self._next_seq)
            self._next_seq += len(fact.texts)
        elif isinstance(fact, AssistantChunk):
            self._push_chunk(fact, fact.time)
            self._next_seq += 1
        else:
            self._push(fact)
            self._next_seq += 1

    def _push(self, fact: LoggedFact) -> None:
        self._run = None
        self._rows.append(fact)
        self._seqs.append(self._next_seq)
        match fact:
            case TurnStart(turn=turn):
                self.last_turn = self.open_turn = turn
            case TurnEnd():
                self.open_turn = None
            case AssistantMessage(content=content):
                self.call_ids.update(block.id for block in content if isinstance(block, ToolCallBlock))
            case StepStart(step=step):
                self.open_step = step
            case StepEnd():
                self.open_step = None
            case SessionTitle():
                self.title = fact
            case UsageRecorded(cost=cost) if cost is not None:
                self.cost = cost
            case SessionMode():
                self.mode = fact
            case SessionModel():
                self.model = fact
            case _:
                pass

    def _push_chunk(self, fact: AssistantChunk, time: int) -> None:
        chunk = fact.chunk
        if type(chunk) is not TextDelta and type(chunk) is not ReasoningDelta:
            self._push(fact)
            return

        run = self._run
        # Turn and step cannot change without a fact in between, which ends the run.
        if (
            run is None
            or run.delta is not type(chunk)
            or run.index != chunk.index
            or run.attempt != fact.attempt
        ):
            run = AssistantRun(
                fact.turn, fact.step, fact.attempt, chunk.index, type(chunk), self._next_seq, time
            )
            self._run = run
            self._rows.append(run)
            self._seqs.append(self._next_seq)
        run.texts.append(chunk.text)
        run.dt_ms.append(time - run.last_time)
        run.last_time = time

    def _wake(self) -> None:
        wakers, self._wakers = self._wakers, []
        for wake in wakers:
            wake()

    def _notify(self, fact: LoggedFact) -> None:
        first: Exception | None = None
        self._notifying = True
        try:
            while True:
                for observer in self._observers:
                    try:
                        observer(fact)
                    except Exception as error:
                        first = first or error
                    except asyncio.CancelledError as error:
                        first = first or StrayCancel(error)
                if not self._backlog:
                    break
                fact = self._backlog.popleft()
        finally:
            self._notifying = False
        if first is not None:
            raise first
