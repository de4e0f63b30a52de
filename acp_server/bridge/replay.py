"""Replays a session: stored facts through the same projector as live ones."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from acp_server.codec.update_out import Update, join_runs, updates_of
from agent_loop import LogRow

PACE_EVERY: Final = 64


async def replay(
    rows: Iterable[LogRow],
    send: Callable[[Update], None],
    room: Callable[[], Awaitable[None]],
    *,
    draws_terminals: bool = False,
) -> None:
    """Send everything a person saw of the conversation, and what they typed, oldest first.

    Args:
        draws_terminals: Whether the editor draws a terminal of what it is told of a command.
    """
    drawn: dict[str, str] | None = {} if draws_terminals else None
    sent = 0
    for fact in join_runs(rows):
        for update in updates_of(fact, replay=True, drawn=drawn):
            send(update)
            sent += 1
            if sent % PACE_EVERY == 0:
                await room()
