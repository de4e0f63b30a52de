"""The permission plugin, around `tools/execute`. It fails closed: no clear yes, no effect.

Every question is on record as `permission/asked` and `permission/decided`, and so is what a mode
allowed unasked, unless the call only reads.
"""

import asyncio
import logging
from collections.abc import Awaitable

from agent_loop.errors import NotFound, in_words
from agent_loop.events.bus import Disposer, Next
from agent_loop.events.contain import stray_cancel
from agent_loop.events.facts import PermissionAsked, PermissionDecided, PermissionMode, SessionMode
from agent_loop.messages import Text
from agent_loop.plugins.permission.approver import OPTIONS, Approver, Decision, PermissionRequest
from agent_loop.plugins.permission.policy import verdict
from agent_loop.plugins.scope import PluginScope
from agent_loop.tools.tool import EXECUTE, PreparedCall, ToolContext, ToolOutcome

log = logging.getLogger(__name__)

DENIED = (
    "Permission denied: the person refused this call, and nothing was done."
    " Do not try the same by another way; ask them or go on without it."
)
PLANNING = (
    "Permission denied: this session is in plan mode, where nothing may be changed or run, and nothing was"
    " done. Read what you need, then tell the person your plan; only they can end plan mode."
)
NOBODY = "Permission denied: nobody could be asked, and nothing was done."
CANCELLED = "Permission denied: the question was dismissed, and nothing was done."


class Permission:
    """Modes and approvers by session."""

    def __init__(self, scope: PluginScope, mode: PermissionMode) -> None:
        """Stand around every tool call, outermost.

        Args:
            mode: For every session whose person chose none.
        """
        self._sessions = scope.sessions
        self._default_mode = mode
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
        effect = call.prepared.effect
        said = verdict(self.mode(call.ctx.session_id), effect)
        if said == "ask":
            decision = await self._ask(call)
        else:
            decision = Decision(said == "allow", "mode")
            if effect.kind not in ("none", "read"):
                self._record(call.ctx, decision)
        if decision.allowed:
            return await next(call)
        words = {"user": DENIED, "mode": PLANNING, "cancel": CANCELLED}.get(decision.by, NOBODY)
        return ToolOutcome((Text(words),), is_error=True, outcome="denied", error_code="DENIED")

    async def _ask(self, call: PreparedCall) -> Decision:
        ctx = call.ctx
        approver = self._approvers.get(ctx.session_id)
        session = self._sessions.get(ctx.session_id)
        if approver is None or session is None:
            decision = Decision(False, "closed")
        else:
            session.log.append(PermissionAsked(ctx.turn, ctx.step, ctx.call_id, OPTIONS))
            request = PermissionRequest(ctx.session_id, ctx.call_id, call.prepared.card, call.prepared.effect)
            try:
                decision = await approver.ask(request)
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and not stray_cancel():
                    self._record(ctx, Decision(False, "cancel"))
                    raise
                log.warning("the permission question of %s failed: %s", ctx.call_id, in_words(error))
                decision = Decision(False, "closed")
            if ctx.token.fired:
                decision = Decision(False, "cancel")
        self._record(ctx, decision)
        return decision

    def _record(self, ctx: ToolContext, decision: Decision) -> None:
        session = self._sessions.get(ctx.session_id)
        if session is not None:
            session.log.append(
                PermissionDecided(
                    ctx.turn, ctx.step, ctx.call_id, decision.allowed, decision.by, decision.option
                )
            )
