"""Answers `session/set_config_option` with every option as it is then.

https://agentclientprotocol.com/protocol/v1/session-config-options
"""

from typing import Any

from acp_server.bridge.connection import Connection
from acp_server.errors import invalid_params
from acp_server.options.config_options import MODE, config_options
from acp_server.options.modes import mode_in
from acp_server.wire.params import SetConfigOptionParams, read


def session_set_config_option(connection: Connection, /, **params: Any) -> dict[str, Any]:
    """Change one option, idle or mid-turn; the updates go out before the answer."""
    request = read(SetConfigOptionParams, params)
    record = connection.record(request.sessionId)
    if request.configId != MODE:
        raise invalid_params("configId", f"is {request.configId[:100]!r}, which is no option of this session")
    mode = mode_in(request.value, "value")
    connection.harness.permission.set_mode(record.id, mode)
    return {"configOptions": config_options(mode)}
