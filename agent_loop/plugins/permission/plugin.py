"""The permission plugin, around `tools/execute`. It fails closed: no clear yes, no effect.

1. What a rule or a remembered answer denies comes first, then what the mode refuses, then what the person
   said beforehand, then the mode.
2. Every question is on record as `permission/asked` and `permission/decided`, and so is whatever was
   decided unasked, unless the call only reads and may.
"""

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from anyio import to_thread

from agent_loop.config.settings import RuleSettings
from agent_loop.errors import HarnessError, NotFound, in_words
from agent_loop.events.bus import Disposer, Next
from agent_loop.events.contain import stray_cancel
from agent_loop.events.facts import PermissionAsked, PermissionDecided, PermissionMode, SessionMode
from agent_loop.events.moments import Warned
from agent_loop.messages import Text
from agent_loop.plugins.permission.approver import (
    ALLOW_ONCE,
    ALLOW_PROJECT,
    ALLOW_SESSION,
    REJECT_ONCE,
    REJECT_PROJECT,
    Approver,
    Decision,
    PermissionRequest,
)
from agent_loop.plugins.permission.policy import Ruling, verdict
from agent_loop.plugins.permission.session_grants import kept_in, session_fact
from agent_loop.plugins.scope import PluginScope
from agent_loop.record import replace
from agent_loop.tools.tool import EXECUTE, PreparedCall, ToolContext, ToolOutcome
from agent_loop.workspace.roots import OutsideRoots

if TYPE_CHECKING:
    from agent_loop.plugins.permission.memory import Memory

log = logging.getLogger(__name__)

DENIED = (
    "Permission denied: the person refused this call, and nothing was done."
    " Do not try the same by another way; ask them or go on without it."
)
FORBIDDEN = (
    "Permission denied: the person ruled this call out beforehand ({rule}), and nothing was done."
    " Do not try the same by another way; ask them or go on without it."
)
PLANNING = (
    "Permission denied: this session is in plan mode, where nothing may be changed or run, and nothing was"
    " done. Read what you need, then tell the person your plan; only they can end plan mode."
)
NOBODY = "Permission denied: nobody could be asked, and nothing was done."
CANCELLED = "Permission denied: the question was dismissed, and nothing was done."


class Permission:
    """Modes, rules and approvers by session."""

    def __init__(
        self, scope: PluginScope, mode: PermissionMode, rules: Sequence[RuleSettings], state_dir: Path
    ) -> None:
        """Stand around every tool call, outermost.

        Args:
            mode: For every session whose person chose none.
            rules: What their settings say, whatever the mode.
            state_dir: Where answers are remembered.
        """
        self._scope = scope
        self._sessions = scope.sessions
        self._default_mode = mode
        self._rules = rules
        self._state_dir = state_dir
        self._memory: Memory | None = None
        self._approvers: dict[str, Approver] = {}
        scope.around(EXECUTE, self._guard, prepend=True)

    def set_approver(self, session_id: str, approver: Approver) -> Disposer:
        """Say who can ask this session's person; without one, what needs asking is refused."""
        self._approvers[session_id] = approver

        def dispose() -> None:
            if self._approvers.get(session_id) is approver:
                del self._approvers[session_id]

        return dispose

    def mode(self, session_id: str) -> PermissionMode:
        """How freely a session's tools may act: what its person chose last, in this process or before."""
        session = self._sessions.get(session_id)
        chosen = None if session is None else session.log.mode
        return self._default_mode if chosen is None else chosen.mode

    def set_mode(self, session_id: str, mode: PermissionMode) -> None:
        """Change it from the next call on; a question that is open stays open.

        Raises:
            NotFound: No such session lives.
            Exception: What a log observer raised; the mode is changed all the same.
        """
        session = self._sessions.get(session_id)
        if session is None:
            raise NotFound(f"there is no live session {session_id}")
        if mode != self.mode(session_id):
            session.log.append(SessionMode(mode))

    async def _guard(
        self, call: PreparedCall, next: Next[PreparedCall, Awaitable[ToolOutcome]]
    ) -> ToolOutcome:
        looks = call.prepared.effect.kind in ("none", "read")
        memory = None if looks and not self._rules else await self._remembering()
        ruling = None if memory is None else await self._ruling(memory, call)
        decision = self._unasked(call, ruling) or await self._ask(call, ruling, memory)
        if not (decision.allowed and looks):
            self._record(call.ctx, decision)
        if memory is not None:
            await self._remember(memory, call, decision)
        if decision.allowed:
            if memory is not None and looks:
                call = replace(call, ctx=replace(call.ctx, hidden=partial(memory.hides, call)))
            return await next(call)
        return ToolOutcome((Text(_words(decision)),), is_error=True, outcome="denied", error_code="DENIED")

    async def _remembering(self) -> "Memory":
        if self._memory is None:
            self._memory = await to_thread.run_sync(_memory, self._rules, self._state_dir)
        return self._memory

    async def _ruling(self, memory: "Memory", call: PreparedCall) -> Ruling | None:
        session = self._sessions.get(call.ctx.session_id)
        in_session = () if session is None else kept_in(session)
        return await to_thread.run_sync(memory.judge, call, in_session)

    def _unasked(self, call: PreparedCall, ruling: Ruling | None) -> Decision | None:
        """What rules and the mode decide by themselves; None when the person is to be asked."""
        mode = self.mode(call.ctx.session_id)
        said = verdict(mode, call.prepared.effect, inside=_is_inside(call))
        if ruling is not None and ruling.verdict == "deny":
            return Decision(False, "rule", rule=ruling.text)
        if said == "deny":
            return Decision(False, "mode", rule=f"mode {mode}")
        if ruling is not None:
            return Decision(True, "rule", rule=ruling.text) if ruling.verdict == "allow" else None
        return Decision(True, "mode", rule=f"mode {mode}") if said == "allow" else None

    async def _ask(self, call: PreparedCall, ruling: Ruling | None, memory: "Memory | None") -> Decision:
        ctx = call.ctx
        approver = self._approvers.get(ctx.session_id)
        session = self._sessions.get(ctx.session_id)
        if approver is None or session is None:
            return Decision(False, "closed")

        # Whoever wants to be asked each time is offered no other answer.
        options = (ALLOW_ONCE, REJECT_ONCE) if ruling or memory is None else memory.options(call)
        why = f"mode {self.mode(ctx.session_id)}" if ruling is None else ruling.text
        ids = tuple(option.id for option in options)
        session.log.append(PermissionAsked(ctx.turn, ctx.step, ctx.call_id, ids, why))
        effect = call.prepared.effect
        request = PermissionRequest(ctx.session_id, ctx.call_id, call.prepared.card, effect, options)
        try:
            decision = await approver.ask(request)
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and not stray_cancel():
                self._record(ctx, Decision(False, "cancel"))
                raise
            log.warning("the permission question of %s failed: %s", ctx.call_id, in_words(error))
            decision = Decision(False, "closed")
        return Decision(False, "cancel") if ctx.token.fired else decision

    async def _remember(self, memory: "Memory", call: PreparedCall, decision: Decision) -> None:
        if decision.option == ALLOW_SESSION:
            call.ctx.append(session_fact(call.ctx.session_id, memory.logged_grant(call)))
        elif decision.option in (ALLOW_PROJECT, REJECT_PROJECT):
            try:
                await to_thread.run_sync(memory.keep, call, decision.allowed)
            except HarnessError as error:
                words = f"Your answer holds this once, it could not be remembered: {error}"
                self._scope.emit(Warned(call.ctx.session_id, words))

    def _record(self, ctx: ToolContext, it: Decision) -> None:
        session = self._sessions.get(ctx.session_id)
        if session is not None:
            session.log.append(
                PermissionDecided(ctx.turn, ctx.step, ctx.call_id, it.allowed, it.by, it.option, it.rule)
            )


def _is_inside(call: PreparedCall) -> bool:
    roots, paths = call.ctx.workspace.roots, call.prepared.effect.paths
    try:
        return bool(paths) and all(roots.resolve(path) == path for path in paths)
    except (OutsideRoots, ValueError):
        return False


def _memory(rules: Sequence[RuleSettings], state_dir: Path) -> "Memory":
    # Imported by the first call that needs it, in a worker thread: everybody waits for the start.
    from agent_loop.plugins.permission.memory import Memory

    return Memory(rules, state_dir)


def _words(refused: Decision) -> str:
    match refused.by:
        case "user":
            return DENIED
        case "rule":
            return FORBIDDEN.format(rule=refused.rule)
        case "mode":
            return PLANNING
        case "cancel":
            return CANCELLED
        case "closed":
            return NOBODY
        case _:
            assert_never(refused.by)
