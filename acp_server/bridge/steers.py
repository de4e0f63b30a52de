"""Steering requests on their way: answered when their text is in a turn, or dropped with it.

`_agent_loop/steer` answers `steered` when the text joined a running turn, `prompted` when it became a
turn of its own (the record's slot answers then), `cancelled` when it was dropped.
"""

from acp_server.rpc.pending import Pending


class Steers:
    """Pending steering requests by message id."""

    def __init__(self) -> None:
        self._open: dict[str, Pending] = {}

    def add(self, message_id: str, pending: Pending) -> None:
        """Remember a request until its message is logged or dropped."""
        self._open[message_id] = pending

    def logged(self, message_id: str) -> None:
        """The text stands in a turn."""
        pending = self._open.pop(message_id, None)
        if pending is not None:
            pending.settle({"outcome": "steered", "messageId": message_id})

    def take(self, message_ids: tuple[str, ...]) -> list[Pending]:
        """Requests whose messages begin a turn of their own; their answer is that turn's."""
        return [self._open.pop(message_id) for message_id in message_ids if message_id in self._open]

    def discarded(self, message_ids: tuple[str, ...]) -> None:
        """Messages were dropped before any turn."""
        for pending in self.take(message_ids):
            pending.settle({"outcome": "cancelled"})

    def cancel_all(self) -> None:
        """Everything open ends as cancelled."""
        self.discarded(tuple(self._open))
