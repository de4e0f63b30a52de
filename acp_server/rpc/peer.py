"""One JSON-RPC peer: lines in, lines out, nothing lost and nothing out of order.

Rules.
1. Every incoming message takes the same synchronous path, in line order, so a cancel cannot overtake
   its prompt. Nothing here awaits.
2. Answers to our own calls and arrays are sorted out before dispatch.
3. A response is queued in the tick of its settling; there is one outbound queue.
4. No line, however broken, ends the reader.
"""

import logging
import re
from collections.abc import Callable
from typing import Any, Final, Protocol

import orjson

from acp_server.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, RpcError
from acp_server.rpc.calls import Calls
from acp_server.rpc.pending import Pending

log = logging.getLogger(__name__)

RequestId = int | str | None

# Every escape of a line, one by one: a surrogate pair, half of one, anything else.
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


class LineSink(Protocol):
    """The outgoing half of a transport."""

    def write(self, line: bytes) -> None:
        """Queue one line, newline included."""


class Peer:
    """Our end of one connection.

    Attributes:
        calls: Our requests to the editor.
        send_line: Queues one encoded line, newline included.
        dispatch: Set once by whoever builds the connection; gets each request and notification.
    """

    def __init__(self, sink: LineSink) -> None:
        self._sink = sink
        self.send_line = sink.write
        self._in_flight: dict[RequestId, Pending] = {}
        self.calls = Calls(self)
        self.dispatch: Callable[[dict[str, Any]], Pending | None] = _nobody

    def on_line(self, line: bytes) -> None:
        """Take one incoming line, without its newline. Never raises."""
        try:
            message = _parsed(line)
        except ValueError:
            if line.strip():
                self._respond(None, error=RpcError(PARSE_ERROR, "Parse error: the line is not JSON"))
            return
        try:
            self._on_message(message)
        except Exception:
            log.exception("a message could not be handled")
            message_id = message.get("id") if isinstance(message, dict) else None
            if isinstance(message, dict) and "id" in message and "method" in message:
                self._respond(message_id, error=RpcError(INTERNAL_ERROR, "Internal error"))

    def on_oversize(self, limit_bytes: int) -> None:
        """An incoming line was longer than the transport takes."""
        why = f"Invalid request: a line may hold {limit_bytes} bytes at most"
        self._respond(None, error=RpcError(INVALID_REQUEST, why))

    def send(self, message: dict[str, Any]) -> None:
        """Queue one message to the editor."""
        self._sink.write(orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE))

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Queue a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def cancel_request(self, request_id: Any) -> None:
        """The editor cancels a request of its own; unknown and finished ids are ignored."""
        pending = self._in_flight.get(request_id) if isinstance(request_id, int | str) else None
        if pending is not None and pending.on_cancel is not None:
            pending.on_cancel()

    def _on_message(self, message: Any) -> None:
        if not isinstance(message, dict):
            what = "ACP uses no batches" if isinstance(message, list) else "a message must be an object"
            self._respond(None, error=RpcError(INVALID_REQUEST, f"Invalid request: {what}"))
            return

        if "method" not in message and ("result" in message or "error" in message):
            self.calls.resolve(message)
            return

        message_id, method, params = message.get("id"), message.get("method"), message.get("params")
        if not _is_id(message_id):
            self._respond(
                None, error=RpcError(INVALID_REQUEST, "Invalid request: id must be text or an integer")
            )
        elif not isinstance(method, str):
            self._respond(message_id, error=RpcError(INVALID_REQUEST, "Invalid request: method is missing"))
        elif params is not None and not isinstance(params, dict):
            if "id" in message:
                error = RpcError(
                    INVALID_PARAMS, "Invalid params: params must be an object", {"path": "params"}
                )
                self._respond(message_id, error=error)
        else:
            self._call(message, message_id, method, params or {})

    def _call(
        self, message: dict[str, Any], message_id: RequestId, method: str, params: dict[str, Any]
    ) -> None:
        envelope: dict[str, Any] = {"method": method, "params": params}
        if "id" in message:
            envelope["id"] = message_id
        pending = self.dispatch(envelope)
        if pending is None:
            return
        if not pending.settled:
            self._in_flight[message_id] = pending
        pending.attach(lambda result, error: self._settle(message_id, pending, result, error))

    def _settle(self, message_id: RequestId, pending: Pending, result: Any, error: RpcError | None) -> None:
        if self._in_flight.get(message_id) is pending:
            del self._in_flight[message_id]
        try:
            self._respond(message_id, result=result, error=error)
        except TypeError:
            log.exception("a result could not be serialised")
            self._respond(message_id, error=RpcError(INTERNAL_ERROR, "Internal error"))

    def _respond(self, message_id: RequestId, *, result: Any = None, error: RpcError | None = None) -> None:
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": message_id}
        if error is None:
            response["result"] = result
        else:
            response["error"] = {"code": error.code, "message": error.message}
            if error.data is not None:
                response["error"]["data"] = dict(error.data)
        self.send(response)


def _parsed(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except ValueError:
        # JavaScript sends half an emoji as an escape that JSON's grammar allows and orjson refuses. The
        # person's prompt must not be lost for it.
        mended = _ESCAPE.sub(_whole, line)
        if mended == line:
            raise
        return orjson.loads(mended)


def _whole(escape: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if escape["half"] else escape[0]


def _is_id(value: Any) -> bool:
    return value is None or isinstance(value, str) or type(value) is int


def _nobody(_: dict[str, Any]) -> Pending | None:
    return None
