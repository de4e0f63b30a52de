"""Answers `session/set_config_option` with every option as it is then.

https://agentclientprotocol.com/protocol/v1/session-config-options
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.errors import invalid_params
from acp_server.options.config_options import MODE, MODEL
from acp_server.options.models import model_in
from acp_server.options.modes import mode_in
from acp_server.options.thoughts import THOUGHT, thought_in
from acp_server.wire.params import SetConfigOptionParams, read


def session_set_config_option(connection: Connection, /, **params: Any) -> dict[str, Any]:
    """Change one option, idle or mid-turn; the updates go out before the answer."""
    request = read(SetConfigOptionParams, params)
    record = connection.record(request.sessionId)
    agent, models = record.handle.agent, connection.harness.models
    if request.configId == MODE:
        connection.harness.permission.set_mode(record.id, mode_in(request.value, "value"))
    elif request.configId == MODEL:
        models.choose(agent, model_in(request.value, models.state(agent), "value"))
    elif request.configId == THOUGHT:
        models.think(agent, thought_in(request.value, models.state(agent).thoughts, "value"))
    else:
        words = f"is {request.configId[:100]!r}, which is no option of this session"
        raise invalid_params("configId", words)
    return {"configOptions": record.options()}
