"""Answers remembered for one session: facts of its log, so they last as long as it does.

Owns how they are logged and found again. A session that was forked from it starts without them.
"""

from typing import Any, Final

from agent_loop.events.facts import PluginFact
from agent_loop.jsonvalue import freeze_json
from agent_loop.messages import Json
from agent_loop.session.sessions import Session

PLUGIN: Final = "permission"
GRANT: Final = "grant"


class _Kept:
    """What was found up to a place in the log."""

    def __init__(self) -> None:
        self.read_to = 0
        self.grants: tuple[Any, ...] = ()


def session_fact(session_id: str, grant: Json) -> PluginFact:
    """The fact that makes a grant, as JSON, hold in a session."""
    return PluginFact(PLUGIN, GRANT, freeze_json({"session": session_id, "grant": grant}))


def kept_in(session: Session) -> tuple[Any, ...]:
    """The grants that hold in a session, as they are logged; only what is new is read."""
    kept = session.state.setdefault(PLUGIN, _Kept())
    new = [
        row.data["grant"]
        for row in session.log.rows_since(kept.read_to)
        if isinstance(row, PluginFact)
        and (row.plugin, row.kind) == (PLUGIN, GRANT)
        and row.data["session"] == session.id
    ]
    kept.grants += tuple(new)
    kept.read_to = session.log.next_seq
    grants: tuple[Any, ...] = kept.grants
    return grants
