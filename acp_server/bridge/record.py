"""One session's record: admits prompts one by one and settles each exactly once.

Rules.
1. The slot holds the prompt that runs. It learns its turn from the `turn/start` that carries the message
   id `send()` returned; "this fact's turn is the slot's turn" is the gate for step and turn facts.
2. A normal answer is given on `agent/turn-flushed`; a cancelled one at once, in one synchronous step:
   stop the agent, fail open cards, clear the slot (which shuts the gate), settle the running prompt,
   then the waiting ones.
3. After a cancel the next prompt goes to the agent at once, while the old turn may still unwind.
4. Nothing that fails while a turn unwinds can change an answer already given.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from acp_server.bridge.steers import Steers
from acp_server.codec.chunk_line import ChunkLine
from acp_server.codec.stop_reason import stop_reason
from acp_server.codec.update_out import Update, chunk_updates, output_update, stopped_call, updates_of
from acp_server.codec.usage_out import added, usage_out
from acp_server.errors import INTERNAL_ERROR, INVALID_REQUEST, RpcError, turn_failed
from acp_server.rpc.pending import Pending
from agent_loop import (
    AgentHandle,
    AssistantChunk,
    Content,
    EndReason,
    LoggedFact,
    SessionMode,
    SessionModel,
    SteeringMessage,
    ToolCall,
    ToolOutput,
    ToolResult,
    TurnEnd,
    TurnFlushed,
    TurnStart,
    Usage,
    UsageRecorded,
    UserMessage,
)

WAITING_LIMIT: Final = 32
"""Prompts that may wait behind the running one."""


@dataclass(slots=True, eq=False)
class _Slot:
    """The running prompt, and how its answers are made from its stop reason."""

    answers: list[tuple[Pending, dict[str, Any]]]
    message_id: str = ""
    turn: int | None = None
    reason: EndReason | None = None
    usage: Usage | None = None


@dataclass(slots=True, eq=False)
class _Waiting:
    pending: Pending
    content: tuple[Content, ...]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class SessionRecord:
    """A session on this connection.

    Attributes:
        send: Queues one update of this session.
        send_line: Queues one line that is encoded already.
        options: Every config option as it is now.
        warnings: News for the person, carried by the session's next result.
        loading: True while a replay is on its way; prompts wait for its end.
    """

    handle: AgentHandle
    send: Callable[[Update], None]
    send_line: Callable[[bytes], None]
    chunk_line: ChunkLine
    options: Callable[[], list[dict[str, Any]]]
    warnings: list[str] = field(default_factory=list)
    loading: bool = False
    undo: list[Callable[[], None]] = field(default_factory=list)
    _slot: _Slot | None = None
    _waiting: deque[_Waiting] = field(default_factory=deque)
    _steers: Steers = field(default_factory=Steers)
    _open_cards: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The session's id."""
        return self.handle.agent.id

    @property
    def blind(self) -> str:
        """The model's name when it is not known to see pictures, else empty."""
        options = self.handle.agent.options
        return "" if options.info.images else options.model

    @property
    def busy(self) -> bool:
        """Whether a prompt runs or waits."""
        return self._slot is not None or bool(self._waiting)

    def prompt(self, content: tuple[Content, ...]) -> Pending:
        """Run a prompt, now or after the ones before it.

        Raises:
            RpcError: -32600 when too many wait already.
        """
        pending = Pending()
        if self._free() and not self._waiting:
            self._start(pending, content, {})
            return pending
        if len(self._waiting) >= WAITING_LIMIT:
            why = f"{WAITING_LIMIT} prompts of this session wait already"
            raise RpcError(INVALID_REQUEST, f"Invalid request: {why}", {"kind": "busy"})
        self._wait_at(len(self._waiting), _Waiting(pending, content))
        return pending

    def steer(self, content: tuple[Content, ...]) -> Pending:
        """Add to the running turn; without one, become a prompt that goes before the waiting ones."""
        pending = Pending()
        agent = self.handle.agent
        prompted = {"outcome": "prompted"}
        if self.loading:
            steers = sum(1 for waiting in self._waiting if waiting.extra)
            self._wait_at(steers, _Waiting(pending, content, prompted))
        elif self._slot is None and agent.status == "idle" and not agent.inbox.queued:
            self._start(pending, content, prompted)
        else:
            message_id = agent.steer(content)
            self._steers.add(message_id, pending)
            if not (agent.inbox.queued or agent.inbox.steering):  # a listener of `agent/queued` cancelled it
                self._steers.discarded((message_id,))
        return pending

    def cancel(self) -> None:
        """`session/cancel`: stop the running turn and everything that waits."""
        self.handle.agent.cancel("session/cancel", "client")
        self._settle_slot_cancelled()
        self._steers.cancel_all()
        waiting, self._waiting = self._waiting, deque()
        for prompt in waiting:
            prompt.pending.settle(self.with_warnings(_cancelled(prompt.extra)))

    def with_warnings(self, result: dict[str, Any], usage: Usage | None = None) -> dict[str, Any]:
        """A result of this session, with the news collected since the last one, and what its turn used."""
        news: dict[str, Any] = {}
        if usage is not None:
            news["usage"] = usage_out(usage)
        if self.warnings:
            news["warnings"] = list(self.warnings)
            self.warnings.clear()
        return {**result, "_meta": {"agent_loop": news}} if news else result

    def on_fact(self, fact: LoggedFact) -> None:
        """Forward what belongs to the slot's turn; the session log calls this inside each append."""
        slot = self._slot
        if type(fact) is AssistantChunk:
            if slot is not None and slot.turn == fact.turn:
                line = self.chunk_line.line(fact)
                if line is not None:
                    self.send_line(line)
                else:
                    for update in chunk_updates(fact):
                        self.send(update)
            return

        match fact:
            case TurnStart():
                self._turn_started(fact)
                return
            case UserMessage(id=message_id) | SteeringMessage(id=message_id):
                self._steers.logged(message_id)
                return
            case UsageRecorded(turn=turn, usage=used) if slot is not None and slot.turn == turn:
                slot.usage = used if slot.usage is None else added(slot.usage, used)
            case TurnEnd(turn=turn, reason=reason) if slot is not None and slot.turn == turn:
                slot.reason = reason
                return
            case _:
                pass

        if fact.SCOPE != "session" and (slot is None or getattr(fact, "turn", None) != slot.turn):
            return
        if isinstance(fact, ToolCall) and fact.card is not None:
            self._open_cards.append(fact.call_id)
        elif isinstance(fact, ToolResult) and fact.call_id in self._open_cards:
            self._open_cards.remove(fact.call_id)
        for update in updates_of(fact):
            self.send(update)
        if isinstance(fact, SessionMode | SessionModel):
            self.tell_options()

    def tell_options(self) -> None:
        """Say what can be chosen now, all of it: the choices are no facts, so no projector knows them."""
        self.send({"sessionUpdate": "config_option_update", "configOptions": self.options()})

    def on_output(self, moment: ToolOutput) -> None:
        """Show what a running call has printed so far."""
        if self._slot is not None and self._slot.turn == moment.turn and moment.call_id in self._open_cards:
            self.send(output_update(moment))

    def on_flushed(self, moment: TurnFlushed) -> None:
        """A turn is over and saved: answer its prompt, let the next one in."""
        slot = self._slot
        if slot is not None and slot.turn == moment.turn:
            self._slot = None
            self._open_cards.clear()
            reason = slot.reason or EndReason("completed")
            stopped = stop_reason(reason)
            for pending, extra in slot.answers:
                if stopped is None:
                    pending.fail(turn_failed(reason))
                else:
                    answer = {**extra, "stopReason": stopped}
                    pending.settle(self.with_warnings(answer, slot.usage))
        self.admit_next()

    def on_discarded(self, message_ids: tuple[str, ...]) -> None:
        """Messages were dropped before any turn: their prompts end as cancelled."""
        self._steers.discarded(message_ids)
        if self._slot is not None and self._slot.turn is None and self._slot.message_id in message_ids:
            self._settle_slot_cancelled()

    def on_status(self, status: str) -> None:
        """Idle lets the next prompt in; disposal ends all of them."""
        if status == "disposed":
            self._settle_slot_cancelled()
            self._steers.cancel_all()
            while self._waiting:
                waiting = self._waiting.popleft()
                waiting.pending.settle(_cancelled(waiting.extra))
        elif status == "idle":
            slot, agent = self._slot, self.handle.agent
            if slot is not None and slot.turn is None and not agent.inbox.queued:
                self._slot = None
                for pending, _ in slot.answers:
                    pending.fail(
                        RpcError(INTERNAL_ERROR, "Internal error: the prompt was lost before its turn")
                    )
            self.admit_next()

    def admit_next(self) -> None:
        """Give the agent the oldest waiting prompt, if it is free for one."""
        while self._waiting and self._free():
            waiting = self._waiting.popleft()
            try:
                self._start(waiting.pending, waiting.content, waiting.extra)
            except Exception:
                waiting.pending.settle(_cancelled(waiting.extra))
                raise

    def _free(self) -> bool:
        inbox = self.handle.agent.inbox
        return self._slot is None and not self.loading and not inbox.queued and not inbox.steering

    def _start(self, pending: Pending, content: tuple[Content, ...], extra: dict[str, Any]) -> None:
        agent = self.handle.agent
        self._slot = slot = _Slot([(pending, extra)])
        try:
            slot.message_id = agent.send(content)
        except BaseException:
            self._slot = None
            raise
        pending.on_cancel = partial(self._cancel_running, slot)
        if not agent.inbox.queued:  # a listener of `agent/queued` cancelled it
            self._settle_slot_cancelled()

    def _turn_started(self, fact: TurnStart) -> None:
        if self._slot is not None and self._slot.message_id in fact.message_ids:
            self._slot.turn = fact.turn
        elif self._slot is None:
            steered = self._steers.take(fact.message_ids)
            if steered:
                answers = [(pending, {"outcome": "prompted"}) for pending in steered]
                self._slot = slot = _Slot(answers, turn=fact.turn)
                for pending in steered:
                    pending.on_cancel = partial(self._cancel_running, slot)

    def _cancel_running(self, slot: _Slot) -> None:
        """`$/cancel_request` of the running prompt: its turn only; the waiting ones go on."""
        agent = self.handle.agent
        if slot.turn is None:
            agent.cancel("$/cancel_request", "client")
        else:
            agent.abort("$/cancel_request", "client")
        self._settle_slot_cancelled()
        self.admit_next()

    def _wait_at(self, place: int, waiting: _Waiting) -> None:
        self._waiting.insert(place, waiting)
        waiting.pending.on_cancel = lambda: self._cancel_waiting(waiting)

    def _cancel_waiting(self, waiting: _Waiting) -> None:
        self._waiting.remove(waiting)
        waiting.pending.settle(_cancelled(waiting.extra))

    def _settle_slot_cancelled(self) -> None:
        slot = self._slot
        if slot is None:
            return
        for call_id in self._open_cards:
            self.send(stopped_call(call_id))
        self._open_cards.clear()
        self._slot = None
        for pending, extra in slot.answers:
            pending.settle(self.with_warnings(_cancelled(extra)))


def _cancelled(extra: dict[str, Any]) -> dict[str, Any]:
    """The answer of a cancelled prompt; a steer that was to be one has words of its own."""
    return {"outcome": "cancelled"} if extra else {"stopReason": "cancelled"}
