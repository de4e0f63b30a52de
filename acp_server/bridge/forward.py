"""Moments to whom they concern: the session's record, and an editor that asked to watch.

Facts do not pass here: a record observes its own session's log.
"""

from collections.abc import Callable
from typing import Any, Final

from acp_server.bridge.record import SessionRecord
from agent_loop import (
    AgentFailed,
    Bus,
    Discarded,
    Moment,
    Queued,
    StatusChanged,
    Steered,
    StepEnded,
    StepStarted,
    ToolOutput,
    ToolTerminal,
    TurnEnded,
    TurnFlushed,
    TurnStarted,
    Warned,
)

WATCHED: Final = (
    StatusChanged,
    Queued,
    Discarded,
    TurnStarted,
    TurnEnded,
    TurnFlushed,
    StepStarted,
    StepEnded,
    Steered,
    ToolOutput,
    ToolTerminal,
    AgentFailed,
)

Find = Callable[[str], SessionRecord | None]


def forward(bus: Bus, find: Find) -> list[Callable[[], None]]:
    """Route moments to records; returns what undoes it."""

    def flushed(moment: TurnFlushed) -> None:
        if (record := find(moment.agent_id)) is not None:
            record.on_flushed(moment)

    def discarded(moment: Discarded) -> None:
        if (record := find(moment.agent_id)) is not None:
            record.on_discarded(moment.message_ids)

    def status(moment: StatusChanged) -> None:
        if (record := find(moment.agent_id)) is not None:
            record.on_status(moment.status)

    def output(moment: ToolOutput) -> None:
        if (record := find(moment.agent_id)) is not None:
            record.on_output(moment)

    def terminal(moment: ToolTerminal) -> None:
        if (record := find(moment.agent_id)) is not None:
            record.on_terminal(moment)

    def warned(moment: Warned) -> None:
        if (record := find(moment.session_id)) is not None:
            record.warnings.append(moment.text)

    return [
        bus.on(TurnFlushed, flushed),
        bus.on(Discarded, discarded),
        bus.on(StatusChanged, status),
        bus.on(ToolOutput, output),
        bus.on(ToolTerminal, terminal),
        bus.on(Warned, warned),
    ]


def watch(bus: Bus, find: Find, notify: Callable[[dict[str, Any]], None]) -> list[Callable[[], None]]:
    """Tell an editor that asked for it of every moment of its sessions; returns what undoes it."""

    def tell(moment: Moment) -> None:
        session_id = getattr(moment, "agent_id", "")
        if find(session_id) is None:
            return
        event = {"sessionId": session_id, "event": moment.TYPE}
        event.update(
            (key, getattr(moment, key)) for key in ("turn", "step", "status") if hasattr(moment, key)
        )
        notify(event)

    return [bus.on(moment, tell, prepend=True) for moment in WATCHED]
