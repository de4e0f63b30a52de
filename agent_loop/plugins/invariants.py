"""A debugging plugin: checks every fact of every new session as it is logged.

A broken rule raises out of the append, so the turn that broke it fails loudly.
"""

from agent_loop.events.moments import SessionCreated
from agent_loop.plugins.scope import PluginScope
from agent_loop.session.invariants import Invariants


def activate(scope: PluginScope) -> None:
    """Watch every session created from now on; a resumed one's stored facts are checked first."""

    def watch(moment: SessionCreated) -> None:
        session = scope.sessions.get(moment.session_id)
        if session is None:
            return
        rules = Invariants()
        for fact in session.log:
            rules.check(fact)
        scope.defer(session.log.observe(rules.check))

    scope.on(SessionCreated, watch)
