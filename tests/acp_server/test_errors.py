"""Exceptions as codes: the right one for each, in our words."""

import pytest

from acp_server.errors import RpcError, to_rpc_error, turn_failed
from agent_loop import (
    Busy,
    ConfigError,
    Disposed,
    Duplicate,
    EndReason,
    HarnessError,
    NotFound,
    StoreError,
)


@pytest.mark.parametrize(
    ("error", "code", "data"),
    [
        (RpcError(-1, "words", {"a": 1}), -1, {"a": 1}),
        (NotFound("words"), -32002, {"sessionId": "s1"}),
        (StoreError("locked", "words"), -32603, {"kind": "locked"}),
        (ConfigError("words", path="OPENAI_API_KEY", needs_auth=True), -32000, None),
        (
            ConfigError("words", path="/c.toml", line=3),
            -32603,
            {"kind": "config", "path": "/c.toml", "line": 3},
        ),
        (ConfigError("words"), -32603, {"kind": "config", "path": ""}),
        (Busy("words"), -32600, {"kind": "busy"}),
        (Duplicate("words"), -32600, {"kind": "busy"}),
        (Disposed("words"), -32603, {"kind": "closed"}),
        (HarnessError("words", code="CWD"), -32602, {"path": "cwd"}),
        (HarnessError("words", code="NO_FACTORY"), -32603, {"kind": "no_factory"}),
        (RuntimeError("secret"), -32603, None),
        (BaseExceptionGroup("secret", [KeyError("secret")]), -32603, None),
    ],
)
def test_each_error_has_its_code_and_its_data(
    error: BaseException, code: int, data: dict[str, object] | None
) -> None:
    """Contracts 5: error codes."""
    told = to_rpc_error(error, session_id="s1")

    assert (told.code, told.data) == (code, data)
    assert "secret" not in told.message


@pytest.mark.parametrize(
    ("reason", "data"),
    [
        (EndReason("error", error_kind="quota", message="Pay."), {"kind": "quota"}),
        (
            EndReason(
                "error", error_kind="rate_limit", message="Pay.", data={"retryAfter": 2, "status": 429}
            ),
            {"kind": "rate_limit", "retryAfter": 2, "status": 429},
        ),
        (EndReason("error", message="Pay."), {"kind": "unknown"}),
    ],
)
def test_a_failed_turn_is_told_in_the_providers_words_with_its_kind(
    reason: EndReason, data: dict[str, object]
) -> None:
    """opencode#42827, claude-agent-acp#161: an empty success, or a bare internal error."""
    told = turn_failed(reason)

    assert (told.code, told.message, told.data) == (-32603, "Pay.", data)


def test_a_long_session_id_comes_back_short() -> None:
    """Scenario B24: a 10 KB id."""
    told = to_rpc_error(NotFound("x"), session_id="x" * 10_000)

    assert told.data == {"sessionId": "x" * 200}
