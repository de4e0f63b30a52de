"""Answers `session/prompt` with a stop reason, when its turn is over.

https://agentclientprotocol.com/protocol/v1/prompt-turn
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.codec.prompt_in import prompt_in
from acp_server.rpc.pending import Pending
from acp_server.wire.params import PromptParams, read


def session_prompt(connection: Connection, /, **params: Any) -> Pending:
    """Run a prompt, or queue it behind the running one; one prompt is one turn and has one answer."""
    request = read(PromptParams, params)
    record = connection.record(request.sessionId)
    return record.prompt(prompt_in(request.prompt, blind=record.blind))
