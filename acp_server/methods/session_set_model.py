"""Answers `session/set_model`, which ACP had before config options and some editors still call.

https://agentclientprotocol.com/protocol/v1/session-config-options
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.options.models import model_in
from acp_server.wire.params import SetModelParams, read


def session_set_model(connection: Connection, /, **params: Any) -> dict[str, Any]:
    """The same as setting the `model` option; the update goes out before the answer."""
    request = read(SetModelParams, params)
    agent, models = connection.record(request.sessionId).handle.agent, connection.harness.models
    models.choose(agent, model_in(request.modelId, models.state(agent), "modelId"))
    return {}
