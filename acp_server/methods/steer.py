"""Answers `_agent_loop/steer`, our extension: text for the turn that runs. Advertised in `initialize`."""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.codec.prompt_in import prompt_in
from acp_server.rpc.pending import Pending
from acp_server.wire.params import PromptParams, read


def steer(connection: Connection, /, **params: Any) -> Pending:
    """Answers with `outcome`: `steered` and messageId, `prompted` and stopReason, or `cancelled`."""
    request = read(PromptParams, params)
    record = connection.record(request.sessionId)
    return record.steer(prompt_in(request.prompt, blind=record.blind))
