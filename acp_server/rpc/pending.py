"""An answer that is still to come, settled exactly once and queued in the tick of its settling."""

from collections.abc import Callable
from typing import Any

from acp_server.errors import RpcError

Reply = Callable[[Any, RpcError | None], None]
"""Queues the response: a result, or an error and no result."""


class Pending:
    """What a method returns when it has no answer yet.

    Attributes:
        on_cancel: Called when the editor cancels the request; None while nothing can be cancelled.
    """

    def __init__(self) -> None:
        self.on_cancel: Callable[[], None] | None = None
        self._reply: Reply | None = None
        self._outcome: tuple[Any, RpcError | None] | None = None
        self._after: Callable[[], None] | None = None

    @property
    def settled(self) -> bool:
        """Whether the answer is given."""
        return self._outcome is not None

    def settle(self, result: Any, *, after: Callable[[], None] | None = None) -> None:
        """Answer; only the first answer counts.

        Args:
            after: Run in the same tick, right behind the queued response.
        """
        self._finish(result, None, after)

    def fail(self, error: RpcError) -> None:
        """Answer with an error; only the first answer counts."""
        self._finish(None, error, None)

    def attach(self, reply: Reply) -> None:
        """Say how to answer; for the peer. An answer given before goes out now."""
        self._reply = reply
        if self._outcome is not None:
            self._send(self._outcome, reply)

    def _finish(self, result: Any, error: RpcError | None, after: Callable[[], None] | None) -> None:
        if self._outcome is not None:
            return
        self.on_cancel = None
        self._outcome = (result, error)
        self._after = after
        if self._reply is not None:
            self._send(self._outcome, self._reply)

    def _send(self, outcome: tuple[Any, RpcError | None], reply: Reply) -> None:
        reply(*outcome)
        if self._after is not None:
            self._after()
