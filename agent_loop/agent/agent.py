"""ReactLoopAgent: the handle everybody else holds on one running conversation.

Owns the verbs (send, steer, inject, abort, cancel, when_idle), the status, and the token of the
running turn. What a turn does belongs to `loop`; who may dispose an agent, to `registry`.

Why no cancel marker: a token exists from before `running` is announced until the turn's end, and in
the one window before it (queued, not yet woken) a cancel empties the queue, which is all the driver
looks at. So nothing can be left over that would drop a later prompt.
"""

import logging
from collections.abc import Sequence
from dataclasses import field

import anyio

from agent_loop.agent.cancel_token import CancelToken
from agent_loop.agent.inbox import Inbox, Waiting
from agent_loop.errors import Disposed
from agent_loop.events.bus import Bus
from agent_loop.events.facts import (
    CancelCause,
    ContextMessage,
    EndReason,
    ThoughtLevel,
    Trigger,
    TurnEnd,
    TurnStart,
)
from agent_loop.events.moments import AgentStatus, Discarded, Moment, Queued, StatusChanged
from agent_loop.ids import new_id
from agent_loop.jsonvalue import freeze_json
from agent_loop.llm.models import ModelInfo
from agent_loop.messages import USER, Content, Source
from agent_loop.record import record
from agent_loop.session.sessions import Session

log = logging.getLogger(__name__)

DEFAULT_MAX_STEPS = 200


@record
class AgentOptions:
    """How one agent behaves.

    Attributes:
        model: `PROVIDER/NAME`; empty when an `agent/request` middleware will say.
        max_steps: Model calls per turn, at least 1; the turn ends `max-steps` there.
        info: What is known of the model.
        thought: How long it shall think; None leaves that to the settings, or the model.
    """

    model: str = ""
    system_prompt: str = ""
    max_steps: int = DEFAULT_MAX_STEPS
    info: ModelInfo = field(default_factory=ModelInfo)
    thought: ThoughtLevel | None = None


class ReactLoopAgent:
    """Inbox, status and one session; a driver task does the work.

    Attributes:
        options: Read anew by each step: whoever replaces them changes the running turn from its next one on.
        done: Set when the driver has left and its last flush is over.
        saved: Whether the newest turn reached the disk; the person is told once when that stops.
    """

    def __init__(self, session: Session, options: AgentOptions, bus: Bus) -> None:
        self.id = session.id
        self.session = session
        self.options = options
        self.inbox = Inbox()
        self.done = anyio.Event()
        self.saved = True
        self._bus = bus
        self._status: AgentStatus = "idle"
        self._token: CancelToken | None = None
        self._idle_waiters: list[anyio.Event] = []
        self._held: list[ContextMessage] | None = None

    @property
    def status(self) -> AgentStatus:
        """`idle`, `running` or, finally, `disposed`."""
        return self._status

    def send(self, content: Sequence[Content], source: Source = USER) -> str:
        """Queue a message for a turn; messages queued before it starts share it.

        Returns:
            The message's id, which `turn/start` lists.
        Raises:
            Disposed: The agent is gone.
            ValueError: `source` is not lossless JSON.
        """
        message = self._message(content, source)
        self.inbox.put_queued(message)
        self._announce_queued(message, steering=False)
        return message.id

    def steer(self, content: Sequence[Content], source: Source = USER) -> str:
        """Add a message to the running turn before its next step; without one, the same as `send`.

        Raises:
            Disposed: The agent is gone.
            ValueError: `source` is not lossless JSON.
        """
        if self._status != "running":
            return self.send(content, source)
        message = self._message(content, source)
        self.inbox.put_steering(message)
        self._announce_queued(message, steering=True)
        return message.id

    def inject(self, content: Sequence[Content], source: Source) -> None:
        """Add context without running the model: to the open turn, or as a turn of its own.

        While tool calls are owed results the context waits for the last of them.

        Raises:
            Disposed: The agent is gone.
            ValueError: `source` is not lossless JSON.
            Exception: What a log observer raised; the turn is closed all the same.
        """
        self._require_alive()
        facts, frozen = self.session.log, freeze_json(source)
        if facts.open_turn is not None:
            context = ContextMessage(facts.open_turn, tuple(content), frozen)
            if self._held is not None:
                self._held.append(context)
            else:
                facts.append(context)
            return

        turn = facts.last_turn + 1
        try:
            facts.append(TurnStart(turn, Trigger("injection", frozen), ()))
            facts.append(ContextMessage(turn, tuple(content), frozen))
        finally:
            facts.append(TurnEnd(turn, EndReason("completed")))

    def abort(self, text: str = "aborted", cause: CancelCause = "plugin") -> None:
        """Stop the running turn and keep what waits; nothing without a turn."""
        if self._token is not None:
            self._token.cancel(cause, text)

    def cancel(self, text: str = "cancelled", cause: CancelCause = "caller") -> None:
        """Stop the running turn and drop everything that waits. Never raises; idle is a no-op."""
        self._discard()
        self.abort(text, cause)

    async def when_idle(self) -> None:
        """Wait until nothing runs and nothing is queued; on a disposed agent, until its loop has ended."""
        # Asked again after each wake: a listener of `idle` may have queued the next message already.
        while self._status != "disposed" and (self._status == "running" or self.inbox.queued):
            waiter = anyio.Event()
            self._idle_waiters.append(waiter)
            await waiter.wait()
        if self._status == "disposed":
            await self.done.wait()

    # For the driver and its turns.

    def open_token(self) -> CancelToken:
        """The token of the turn about to begin; `cancel` reaches it from now on."""
        self._token = CancelToken()
        return self._token

    def drop_token(self) -> None:
        """The turn is over; a cancel from now on is none of its business."""
        self._token = None

    def set_status(self, status: AgentStatus) -> None:
        """Make a transition; repeats and anything after `disposed` are ignored. Waiters go first."""
        if status != "running":
            self._release_waiters()
        if status == self._status or self._status == "disposed":
            return
        self._status = status
        self._contained(StatusChanged(self.id, status))

    def hold_context(self) -> None:
        """From now on `inject` waits: a tool call must be followed by its result."""
        self._held = []

    def release_context(self) -> None:
        """Log what was injected since `hold_context`, in order.

        Raises:
            Exception: The first one a log observer raised; everything is logged all the same.
        """
        held, self._held = self._held or [], None
        first: Exception | None = None
        for context in held:
            try:
                self.session.log.append(context)
            except Exception as error:
                first = first or error
        if first is not None:
            raise first

    def begin_disposal(self) -> None:
        """Stop for good: fires the token, drops what waits, lets the driver go. Idempotent, never raises."""
        if self._status == "disposed":
            return
        self._discard()
        self.abort("disposed", "disposed")
        self.inbox.close()
        self.set_status("disposed")

    def _message(self, content: Sequence[Content], source: Source) -> Waiting:
        self._require_alive()
        return Waiting(new_id(), tuple(content), freeze_json(source))

    def _require_alive(self) -> None:
        if self._status == "disposed":
            raise Disposed(f"agent {self.id} is disposed")

    def _announce_queued(self, message: Waiting, *, steering: bool) -> None:
        self._contained(Queued(self.id, message.id, message.content, message.source, steering))

    def _discard(self) -> None:
        dropped = self.inbox.clear()
        if dropped:
            self._contained(Discarded(self.id, dropped))

    def _release_waiters(self) -> None:
        waiters, self._idle_waiters = self._idle_waiters, []
        for waiter in waiters:
            waiter.set()

    def _contained(self, moment: Moment) -> None:
        try:
            self._bus.emit(moment)
        except Exception:
            log.exception("a listener of %s raised", moment.TYPE)
