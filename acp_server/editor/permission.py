"""Asks the editor's person for permission; anything but a clear yes is a no.

Source: https://agentclientprotocol.com/protocol/v1/tool-calls (requesting permission)
"""

import logging
from typing import Any, Final

from acp_server.codec.card_out import card_out
from acp_server.errors import RpcError
from acp_server.rpc.calls import Calls, ConnectionClosed
from agent_loop import Decision, PermissionRequest

log = logging.getLogger(__name__)

OPTIONS: Final = (
    {"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"},
    {"optionId": "reject_once", "name": "Reject", "kind": "reject_once"},
)


class EditorApprover:
    """Implements `Approver` with `session/request_permission`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def ask(self, request: PermissionRequest) -> Decision:
        """See `Approver.ask`."""
        params = {
            "sessionId": request.session_id,
            "toolCall": {"toolCallId": request.call_id, **card_out(request.card)},
            "options": list(OPTIONS),
        }
        try:
            return _decision(await self._calls.request("session/request_permission", params))
        except ConnectionClosed:
            return Decision(False, "closed")
        except RpcError as error:
            log.warning("the editor answered a permission request with error %s", error.code)
            return Decision(False, "closed")


def _decision(result: Any) -> Decision:
    outcome = result.get("outcome") if isinstance(result, dict) else None
    match outcome:
        case {"outcome": "selected", "optionId": "allow_once"}:
            return Decision(True, "user", "allow_once")
        case {"outcome": "selected", "optionId": "reject_once"}:
            return Decision(False, "user", "reject_once")
        case {"outcome": "cancelled"}:
            return Decision(False, "cancel")
        case _:
            log.warning("the editor answered a permission request with an outcome it was not offered")
            return Decision(False, "closed")
