"""Our requests to the editor, and their answers."""

from typing import Any, Protocol

import anyio

from acp_server.errors import RpcError


class ConnectionClosed(Exception):
    """The editor is gone; no answer will come."""


class Outbound(Protocol):
    """Where messages to the editor are queued."""

    def send(self, message: dict[str, Any]) -> None:
        """Queue one message."""


class _Call:
    __slots__ = ("answered", "error", "result")

    def __init__(self) -> None:
        self.answered = anyio.Event()
        self.result: Any = None
        self.error: Exception | None = None


class Calls:
    """Requests in flight, by our own ids; the editor's ids are another space."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound
        self._next_id = 1
        self._open: dict[int, _Call] = {}
        self._closed = False

    async def request(self, method: str, params: dict[str, Any]) -> Any:
        """Call the editor and wait, without a deadline, for its answer.

        A cancelled wait is told to the editor as `$/cancel_request`; its late answer is then ignored.

        Raises:
            RpcError: It answered with an error.
            ConnectionClosed: It is gone.
        """
        if self._closed:
            raise ConnectionClosed
        call_id, call = self._next_id, _Call()
        self._next_id += 1
        self._open[call_id] = call
        self._outbound.send({"jsonrpc": "2.0", "id": call_id, "method": method, "params": params})
        try:
            await call.answered.wait()
        except BaseException:
            if self._open.pop(call_id, None) is not None and not self._closed:
                cancel = {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": call_id}}
                self._outbound.send(cancel)
            raise
        if call.error is not None:
            raise call.error
        return call.result

    def resolve(self, message: dict[str, Any]) -> None:
        """Take an answer; one to no open request (late, or never asked) is ignored."""
        call = self._open.pop(message["id"], None) if type(message.get("id")) is int else None
        if call is None:
            return
        error = message.get("error")
        if error is not None:
            call.error = _error_of(error)
        else:
            call.result = message.get("result")
        call.answered.set()

    def close(self) -> None:
        """The editor is gone: every open request fails."""
        self._closed = True
        for call in self._open.values():
            call.error = ConnectionClosed()
            call.answered.set()
        self._open.clear()


def _error_of(error: Any) -> RpcError:
    if not isinstance(error, dict):
        return RpcError(0, "the editor answered with a malformed error")
    code, message = error.get("code"), error.get("message")
    return RpcError(code if isinstance(code, int) else 0, message if isinstance(message, str) else "")
