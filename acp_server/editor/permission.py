"""Asks the editor's person for permission; anything but a clear yes is a no.

Source: https://agentclientprotocol.com/protocol/v1/tool-calls (requesting permission)
"""

import logging
from typing import Any

from acp_server.codec.card_out import card_out
from acp_server.errors import RpcError
from acp_server.rpc.calls import Calls, ConnectionClosed
from agent_loop import Decision, PermissionRequest

log = logging.getLogger(__name__)


class EditorApprover:
    """Implements `Approver` with `session/request_permission`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def ask(self, request: PermissionRequest) -> Decision:
        """See `Approver.ask`."""
        params = {
            "sessionId": request.session_id,
            "toolCall": {"toolCallId": request.call_id, **card_out(request.card)},
            "options": [
                {"optionId": option.id, "name": option.name, "kind": option.kind}
                for option in request.options
            ],
        }
        try:
            answer = await self._calls.request("session/request_permission", params)
        except ConnectionClosed:
            return Decision(False, "closed")
        except RpcError as error:
            log.warning("the editor answered a permission request with error %s", error.code)
            return Decision(False, "closed")
        return _decision(request, answer)


def _decision(request: PermissionRequest, result: Any) -> Decision:
    match result.get("outcome") if isinstance(result, dict) else None:
        case {"outcome": "selected", "optionId": chosen}:
            for option in request.options:
                if option.id == chosen:
                    return Decision(option.allows, "user", option.id)
        case {"outcome": "cancelled"}:
            return Decision(False, "cancel")
        case _:
            pass
    log.warning("the editor answered a permission request with an outcome it was not offered")
    return Decision(False, "closed")
