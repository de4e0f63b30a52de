"""Runs one turn: steps follow one another until nothing is owed.

Owns when a turn opens and why it closes. One request and its tools belong to `step`; which prompt
comes next belongs to `driver`.

Rules.
1. Whatever a listener raises, the log gets exactly one `turn/end` for each `turn/start`, the step's
   end before it, and at most one `error` fact; the next turn runs.
2. Whether the turn was opened is read from the log, never from a flag.
3. A failed step closes first, then its reason is chosen: disposed, then our cancel, then the error.
4. The reason is set before the error is logged, so that a raising observer cannot leave it unset.
"""

import asyncio
import logging

from agent_loop.agent.agent import ReactLoopAgent
from agent_loop.agent.cancel_token import CancelToken, TurnCancelled
from agent_loop.agent.inbox import Waiting
from agent_loop.events.contain import stray_cancel
from agent_loop.events.facts import (
    EndReason,
    LoggedFact,
    SteeringMessage,
    StepEnd,
    StepStart,
    Trigger,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from agent_loop.events.moments import (
    AgentFailed,
    Moment,
    Steered,
    StepEnded,
    StepStarted,
    TurnEnded,
    TurnStarted,
)
from agent_loop.events.waterfalls import TURN_CONTINUATION, Continuation
from agent_loop.loop.end_reason import cancelled, error_fact, failed
from agent_loop.loop.services import Services
from agent_loop.loop.step import StepOutcome, run_step
from agent_loop.loop.tool_calls import StepPlace

log = logging.getLogger(__name__)


class Turn:
    """One turn of one agent.

    Attributes:
        step: Number of the newest step, 0 before the first.
    """

    def __init__(self, agent: ReactLoopAgent, services: Services, token: CancelToken) -> None:
        self._agent = agent
        self._services = services
        self._token = token
        self._log = agent.session.log
        self._reason: EndReason | None = None
        self._reported = False
        self._max_tokens = False
        self.number = self._log.last_turn + 1
        self.step = 0

    @property
    def opened(self) -> bool:
        """Whether this turn's `turn/start` is in the log."""
        return self._log.last_turn >= self.number

    @property
    def _is_open(self) -> bool:
        return self._log.open_turn == self.number

    async def run(self, messages: tuple[Waiting, ...]) -> None:
        """Run to `turn/end`.

        Raises:
            Exception: Something failed before `turn/start` was logged; nothing else ever leaves here.
        """
        try:
            self._open(messages)
            self._reason = await self._steps()
            self._append_contained(TurnEnd(self.number, self._reason))
            self._agent.drop_token()
            self._services.bus.emit(TurnEnded(self._agent.id, self.number, self._reason))
        except (Exception, asyncio.CancelledError) as error:
            if not self.opened:
                raise
            genuine = isinstance(error, asyncio.CancelledError) and not stray_cancel()
            self._close_after(error, genuine_cancel=genuine)
            if genuine:
                raise

    def _open(self, messages: tuple[Waiting, ...]) -> None:
        trigger = Trigger("message", messages[0].source)
        self._log.append(TurnStart(self.number, trigger, tuple(message.id for message in messages)))
        for message in messages:
            self._log.append(UserMessage(self.number, message.id, message.content, message.source))
        self._services.bus.emit(TurnStarted(self._agent.id, self.number))

    async def _steps(self) -> EndReason:
        while True:
            self._drain_steering()
            self.step += 1
            self._log.append(StepStart(self.number, self.step))
            self._services.bus.emit(StepStarted(self._agent.id, self.number, self.step))
            if self._token.fired:
                self._close_step()
                return cancelled(self._token)

            try:
                outcome = await run_step(self._place())
                steered = self._drain_steering()
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and not stray_cancel():
                    raise
                return self._failed_step(error)

            if not self._close_step():
                return self._reason or failed(RuntimeError("the step could not be closed"))
            self._max_tokens = self._max_tokens or outcome.max_tokens
            ended = await self._ends(outcome, steered)
            if ended is not None:
                return ended

    async def _ends(self, outcome: StepOutcome, steered: bool) -> EndReason | None:
        """The turn's reason when no further step follows, else None. Nobody may vote a refused turn on."""
        if outcome.refused:
            return cancelled(self._token) if self._token.fired else EndReason("refusal")

        async def core(value: Continuation) -> bool:
            return value.wanted

        wanted = outcome.had_tool_calls or steered
        go_on = False
        try:
            with self._token.scope():
                value = Continuation(self._agent.id, self.number, self.step, wanted)
                go_on = await self._services.bus.run(TURN_CONTINUATION, value, core)
        except TurnCancelled:
            return cancelled(self._token)
        if not go_on and not self._agent.inbox.steering:
            return EndReason("max-tokens" if self._max_tokens else "completed")
        if self.step >= self._agent.options.max_steps:
            return EndReason("max-steps")
        return None

    def _place(self) -> StepPlace:
        return StepPlace(self._agent, self._services, self._token, self.number, self.step)

    def _drain_steering(self) -> bool:
        """Log what was steered meanwhile; whether there was any. One at a time: a raise loses no other.

        Once the token fired no step would read it, so what is left becomes the next turn's.
        """
        steered = False
        while not self._token.fired and (message := self._agent.inbox.next_steering()) is not None:
            self._log.append(SteeringMessage(self.number, message.id, message.content, message.source))
            self._services.bus.emit(Steered(self._agent.id, self.number, message.id))
            steered = True
        return steered

    def _failed_step(self, error: BaseException) -> EndReason:
        self._close_step()
        if self._token.fired:
            return cancelled(self._token)
        self._fail(error)
        return self._reason or failed(error)

    def _close_after(self, error: BaseException, *, genuine_cancel: bool) -> None:
        """The turn unwound: close what is open, report once, whatever else raises meanwhile."""
        self._close_step()
        if self._token.cause == "disposed" or genuine_cancel:
            self._reason = self._reason or EndReason("disposed")
        else:
            self._fail(error)
        if self._is_open:
            self._append_contained(TurnEnd(self.number, self._reason or failed(error)))
        self._agent.drop_token()

    def _close_step(self) -> bool:
        """Close the open step, if any; false when a listener raised, which fails the turn."""
        if self._log.open_step is None:
            return True
        errors = (
            self._append_contained(StepEnd(self.number, self._log.open_step)),
            self._emit_contained(StepEnded(self._agent.id, self.number, self.step)),
        )
        first = errors[0] or errors[1]
        if first is not None:
            self._fail(first)
        return first is None

    def _fail(self, error: BaseException) -> None:
        """Report a failed turn, once."""
        if self._reported:
            return
        self._reported = True
        if self._is_open:
            self._reason = failed(error)
            self._append_contained(error_fact(self.number, error))
        log.warning("turn %s of %s failed", self.number, self._agent.id, exc_info=error)
        self._emit_contained(AgentFailed(self._agent.id, self.number, self.step, error))

    def _append_contained(self, fact: LoggedFact) -> BaseException | None:
        try:
            self._log.append(fact)
        except Exception as error:
            log.warning("an observer of %s raised", fact.TYPE, exc_info=error)
            return error
        return None

    def _emit_contained(self, moment: Moment) -> BaseException | None:
        try:
            self._services.bus.emit(moment)
        except Exception as error:
            log.warning("a listener of %s raised", moment.TYPE, exc_info=error)
            return error
        return None
