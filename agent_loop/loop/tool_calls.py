"""Runs the tool calls of one step, in the model's order, and leaves none without a result.

Rules.
1. Per call: prepare → `tool/call` → `tools/execute` (permission outermost) → token check →
   `tool/started` → checkpoint → body → `tool/result`.
2. Neighbouring calls that are safe beside each other run together; any other call is a barrier.
   Calls and results are logged in the model's order all the same.
3. Whatever happens, every call the model made gets `tool/call` and `tool/result`. One that nobody
   was shown (the turn stopped before it) is logged with no card.
4. What was prepared, and so was shown and consented to, is what runs; whoever stands around
   `tools/execute` may keep a call from running or change its outcome, not the call.
5. A result logged after the token fired says `interrupted`; the model still reads what there is.
"""

from collections.abc import Sequence
from functools import partial

import anyio

from agent_loop.agent.agent import ReactLoopAgent
from agent_loop.agent.cancel_token import CancelToken
from agent_loop.cards import CardText
from agent_loop.events.contain import stray_cancel
from agent_loop.events.facts import ToolCall, ToolResult, ToolStarted
from agent_loop.events.moments import Checkpoint, ToolOutput, ToolTerminal
from agent_loop.loop.services import Services
from agent_loop.messages import Text, ToolCallBlock, text_of
from agent_loop.record import record, replace
from agent_loop.tools.registry import BoundCall, Refusal
from agent_loop.tools.tool import PreparedCall, ToolContext, ToolOutcome

NEVER_STARTED = "The turn was stopped before this call started; it had no effect."
CUT_OFF = "The turn was stopped while this call ran; whether it had an effect is unknown."
NOT_SHOWN = "Error: the call is not the one that was looked at and allowed any more, and was not started."
NOT_RECORDED = "Error: the call was not started, because it could not be recorded on disk first."


@record
class StepPlace:
    """Where the loop is, and under which token."""

    agent: ReactLoopAgent
    services: Services
    token: CancelToken
    turn: int
    step: int


class ToolBatch:
    """The calls of one assistant message."""

    def __init__(self, place: StepPlace, calls: Sequence[ToolCallBlock]) -> None:
        self._place = place
        self._calls = calls
        self._log = place.agent.session.log
        self._prepared: dict[str, BoundCall | Refusal] = {}
        self._outcomes: dict[str, ToolOutcome] = {}
        self._started: set[str] = set()
        self._answered = 0
        self._failure: BaseException | None = None

    async def run(self) -> None:
        """Run them all, or as many as the token allows.

        Raises:
            Exception: What a log observer raised; `close` still has to be called, as always.
        """
        at = 0
        while at < len(self._calls) and not self._stopped():
            group = self._group_at(at)
            for call in group:
                await self._prepare(call)
            await self._execute(group)
            at += len(group)
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Give every call that has none its result. Idempotent.

        Raises:
            Exception: The first one a log observer raised; everything is logged all the same.
        """
        for call in self._calls[self._answered :]:
            if call.id not in self._prepared:
                self._contained(self._call_fact(call, shown=False))
            self._log_result(call)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _stopped(self) -> bool:
        return self._place.token.fired or self._failure is not None

    def _group_at(self, at: int) -> Sequence[ToolCallBlock]:
        end = at
        while end < len(self._calls) and self._parallel_safe(self._calls[end]):
            end += 1
        return self._calls[at : max(end, at + 1)]

    def _parallel_safe(self, call: ToolCallBlock) -> bool:
        tools = self._place.services.tools
        return tools.parallel_safe(call.name, call.arguments, self._place.agent.session.id)

    async def _prepare(self, call: ToolCallBlock) -> None:
        if self._stopped():
            return
        prepared: BoundCall | Refusal | None = None
        with self._place.token.quiet_scope():
            tools = self._place.services.tools
            prepared = await tools.prepare(call.name, call.arguments, self._context(call))
        if prepared is None or self._place.token.fired:
            return
        self._prepared[call.id] = prepared
        self._contained(self._call_fact(call, shown=True))

    async def _execute(self, group: Sequence[ToolCallBlock]) -> None:
        if len(group) == 1:
            await self._execute_one(group[0])
            return
        async with anyio.create_task_group() as tasks:
            for call in group:
                tasks.start_soon(self._execute_one, call)

    async def _execute_one(self, call: ToolCallBlock) -> None:
        prepared = self._prepared.get(call.id)
        if prepared is None or self._stopped():
            return
        if isinstance(prepared, Refusal):
            self._outcomes[call.id] = prepared.outcome
        else:
            try:
                with self._place.token.quiet_scope():
                    self._outcomes[call.id] = await self._place.services.tools.execute(
                        prepared, partial(self._body, call, prepared)
                    )
            except BaseException as error:
                if isinstance(error, Exception) or stray_cancel():
                    self._failure = self._failure or error
                    return
                raise
        self._log_ready_results()

    async def _body(self, call: ToolCallBlock, shown: BoundCall, prepared: PreparedCall) -> ToolOutcome:
        """The innermost of `tools/execute`: nothing before here has touched the world."""
        place = self._place
        if self._stopped():
            return ToolOutcome((Text(NEVER_STARTED),), is_error=True, outcome="skipped")
        if prepared.prepared is not shown.prepared:
            return ToolOutcome((Text(NOT_SHOWN),), is_error=True, outcome="denied", error_code="CHANGED")
        self._contained(ToolStarted(place.turn, place.step, call.id))
        if self._stopped():
            return ToolOutcome((Text(NEVER_STARTED),), is_error=True, outcome="skipped")
        durable = prepared.prepared.effect.kind not in ("none", "read")
        try:
            await place.services.bus.parallel(Checkpoint(place.agent.session.id, durable))
        except Exception:
            return ToolOutcome(
                (Text(NOT_RECORDED),), is_error=True, outcome="skipped", error_code="CHECKPOINT"
            )
        # A cancel in the tick in which the checkpoint ended is not delivered by a scope before the body.
        if self._stopped():
            return ToolOutcome((Text(NEVER_STARTED),), is_error=True, outcome="skipped")
        self._started.add(call.id)
        return await place.services.tools.run_body(prepared)

    def _log_ready_results(self) -> None:
        while self._answered < len(self._calls) and self._calls[self._answered].id in self._outcomes:
            self._log_result(self._calls[self._answered])

    def _log_result(self, call: ToolCallBlock) -> None:
        self._answered += 1
        outcome = self._outcomes.get(call.id)
        if outcome is None:
            started = call.id in self._started
            outcome = ToolOutcome(
                (Text(CUT_OFF if started else NEVER_STARTED),),
                is_error=True,
                outcome="unknown" if started else "skipped",
                error_code="STOPPED",
            )
        if self._place.token.fired:
            outcome = replace(outcome, outcome="interrupted")
        self._contained(self._result_fact(call, outcome))

    def _call_fact(self, call: ToolCallBlock, *, shown: bool) -> ToolCall:
        place = self._place
        card = None
        if shown:
            prepared = self._prepared[call.id]
            card = prepared.card if isinstance(prepared, Refusal) else prepared.prepared.card
        return ToolCall(place.turn, place.step, call.id, call.name, call.arguments, card)

    def _result_fact(self, call: ToolCallBlock, outcome: ToolOutcome) -> ToolResult:
        place, card = self._place, outcome.card
        prepared = self._prepared.get(call.id)
        if prepared is None:
            card = None
        else:
            if card is None:
                card = prepared.card if isinstance(prepared, Refusal) else prepared.prepared.card
                if outcome.is_error:
                    card = replace(card, body=(CardText(text_of(outcome.content)),))
            skipped = outcome.outcome == "skipped" and not isinstance(prepared, Refusal)
            cancelled = skipped or outcome.outcome == "interrupted"
            card = card.with_status("cancelled" if cancelled else "failed" if outcome.is_error else "done")
        return ToolResult(
            place.turn,
            place.step,
            call.id,
            outcome.content,
            outcome.is_error,
            outcome.outcome,
            outcome.error_code,
            outcome.exit,
            card,
        )

    def _contained(self, fact: ToolCall | ToolStarted | ToolResult) -> None:
        try:
            self._log.append(fact)
        except Exception as error:
            self._failure = self._failure or error

    def _context(self, call: ToolCallBlock) -> ToolContext:
        place = self._place

        def output(text: str, truncated: bool) -> None:
            if place.services.bus.listens(ToolOutput) and not place.token.fired:
                place.services.bus.emit(
                    ToolOutput(place.agent.id, place.turn, place.step, call.id, text, truncated)
                )

        def terminal(terminal_id: str) -> None:
            if not place.token.fired:
                place.services.bus.emit(
                    ToolTerminal(place.agent.id, place.turn, place.step, call.id, terminal_id)
                )

        session = place.agent.session
        return ToolContext(
            session_id=session.id,
            turn=place.turn,
            step=place.step,
            call_id=call.id,
            workspace=place.services.workspace,
            token=place.token,
            session_state=session.state,
            append=session.log.append,
            output=output,
            terminal=terminal,
        )
