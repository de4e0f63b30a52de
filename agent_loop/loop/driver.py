"""The driver: one task per agent for its whole life, which turns what is queued into turns.

Owns which prompt comes next, the flush after each turn, and the status. What a turn does belongs to
`turn`. One raise never ends the driver; only disposal does.
"""

import asyncio
import logging
from typing import TYPE_CHECKING

import anyio

from agent_loop.agent.agent import ReactLoopAgent
from agent_loop.errors import in_words
from agent_loop.events.contain import stray_cancel
from agent_loop.events.moments import AgentFailed, Checkpoint, Moment, TurnFlushed, Warned
from agent_loop.loop.services import Services

if TYPE_CHECKING:
    from agent_loop.loop.turn import Turn

log = logging.getLogger(__name__)

FLUSH_GRACE_S = 10.0


async def run_loop(agent: ReactLoopAgent, services: Services) -> None:
    """Serve the agent's inbox until it is disposed; sets `agent.done` on the way out."""
    try:
        while True:
            await agent.inbox.wait()
            if agent.status == "disposed":
                return
            await _serve(agent, services)
    finally:
        agent.done.set()


async def _serve(agent: ReactLoopAgent, services: Services) -> None:
    """Turns until nothing is queued; idle is reported only then, so that chained turns don't bounce."""
    # A start needs the driver but no turn; the harness imports it behind the first session's answer.
    from agent_loop.loop.turn import Turn

    while agent.inbox.queued and agent.status != "disposed":
        token = agent.open_token()
        agent.set_status("running")
        if not token.fired:
            await _one_turn(agent, services, Turn(agent, services, token))
        agent.drop_token()
        agent.inbox.requeue_steering()
    agent.set_status("idle")


async def _one_turn(agent: ReactLoopAgent, services: Services, turn: "Turn") -> None:
    try:
        await turn.run(agent.inbox.take_queued())
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and not stray_cancel():
            raise
        log.exception("agent %s failed before turn %s began", agent.id, turn.number)
        _contained(services, AgentFailed(agent.id, turn.number, 0, error))
    finally:
        if turn.opened:
            await _flush(agent, services, turn)


async def _flush(agent: ReactLoopAgent, services: Services, turn: "Turn") -> None:
    """Make the turn durable, out of the reach of any cancel, but not for ever."""
    error: str | None = f"the disk did not answer within {FLUSH_GRACE_S:.0f} s"
    try:
        with anyio.move_on_after(FLUSH_GRACE_S, shield=True):
            await services.bus.parallel(Checkpoint(agent.session.id, durable=True))
            error = None
    except Exception as failure:
        error = in_words(failure)
        log.warning("turn %s of %s could not be saved", turn.number, agent.id, exc_info=failure)
        _contained(services, AgentFailed(agent.id, turn.number, turn.step, failure))
    if error is not None and agent.saved:
        text = f"This turn could not be saved to disk ({error}). The session goes on in memory."
        _contained(services, Warned(agent.session.id, text))
    agent.saved = error is None
    _contained(services, TurnFlushed(agent.id, turn.number, error))


def _contained(services: Services, moment: Moment) -> None:
    try:
        services.bus.emit(moment)
    except Exception:
        log.exception("a listener of %s raised", moment.TYPE)
