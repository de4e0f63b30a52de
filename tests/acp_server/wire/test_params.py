"""Incoming parameters: strict where a wrong type means a bug, lenient where only one thing can be meant."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_server.errors import RpcError
from acp_server.wire.params import (
    CancelRequestParams,
    InitializeParams,
    LoadSessionParams,
    NewSessionParams,
    Params,
    PromptParams,
    SessionParams,
    read,
)
from tests.doubles.facts import json_values

MODELS: list[type[Params]] = [
    InitializeParams,
    NewSessionParams,
    LoadSessionParams,
    PromptParams,
    SessionParams,
    CancelRequestParams,
]


@pytest.mark.parametrize(
    ("model", "params", "path", "words"),
    [
        (InitializeParams, {}, "protocolVersion", "is required"),
        (InitializeParams, {"protocolVersion": "1"}, "protocolVersion", "must be an integer"),
        (InitializeParams, {"protocolVersion": 1.0}, "protocolVersion", "must be an integer"),
        (InitializeParams, {"protocolVersion": True}, "protocolVersion", "must be an integer"),
        (InitializeParams, {"protocolVersion": None}, "protocolVersion", "must be an integer"),
        (InitializeParams, {"protocolVersion": -1}, "protocolVersion", "is too small"),
        (InitializeParams, {"protocolVersion": 65536}, "protocolVersion", "is too large"),
        (NewSessionParams, {"cwd": 5}, "cwd", "must be a string"),
        (NewSessionParams, {"cwd": "/", "mcpServers": {}}, "mcpServers", "must be an array"),
        (NewSessionParams, {"cwd": "/", "mcpServers": "x"}, "mcpServers", "must be an array"),
        (LoadSessionParams, {"cwd": "/"}, "sessionId", "is required"),
        (LoadSessionParams, {"cwd": "/", "sessionId": 7}, "sessionId", "must be a string"),
        (PromptParams, {"sessionId": "s"}, "prompt", "is required"),
        (PromptParams, {"sessionId": "s", "prompt": "hello"}, "prompt", "must be an array"),
        (CancelRequestParams, {}, "requestId", "is required"),
    ],
)
def test_what_is_wrong_is_named_with_its_path_in_our_words(
    model: type[Params], params: dict[str, Any], path: str, words: str
) -> None:
    """codecompanion.nvim#2860: "Invalid params" with no hint of the field."""
    with pytest.raises(RpcError) as caught:
        read(model, params)

    assert (caught.value.code, caught.value.data) == (-32602, {"path": path})
    assert caught.value.message == f"Invalid params: {path} {words}"


@pytest.mark.parametrize("wrong", [1.5, True, {}, []])
def test_a_request_id_of_another_type_is_refused(wrong: object) -> None:
    """ACP, schema RequestId."""
    with pytest.raises(RpcError) as caught:
        read(CancelRequestParams, {"requestId": wrong})

    assert caught.value.code == -32602


@pytest.mark.parametrize("lists", [{}, {"mcpServers": None, "additionalDirectories": None}])
def test_missing_and_null_lists_are_empty(lists: dict[str, Any]) -> None:
    """kimi-cli#764: a client left out mcpServers; ACP reads null as empty."""
    params = read(NewSessionParams, {"cwd": "/", **lists})

    assert (params.mcpServers, params.additionalDirectories) == ([], [])


def test_members_nobody_knows_are_ignored() -> None:
    """cline#10011: extra members anywhere."""
    params = read(PromptParams, {"sessionId": "s", "prompt": [], "messageId": "m", "_meta": {"a": 1}})

    assert params.sessionId == "s"


@pytest.mark.parametrize("capabilities", [None, 5, "x", [], {"fs": 7}])
def test_capabilities_that_make_no_sense_are_taken(capabilities: object) -> None:
    """ACP, schema hint default-on-error: malformed reads as not advertised, never as a failure."""
    assert read(InitializeParams, {"protocolVersion": 1, "clientCapabilities": capabilities})


@pytest.mark.parametrize("model", MODELS)
@given(
    params=st.dictionaries(
        st.sampled_from(["protocolVersion", "cwd", "mcpServers", "sessionId", "prompt", "requestId"]),
        json_values,
    )
)
def test_no_params_fail_in_another_way(model: type[Params], params: dict[str, Any]) -> None:
    """Contracts 5: no library's error text on the wire."""
    error: Exception | None = None
    try:
        read(model, params)
    except Exception as raised:
        error = raised

    if error is not None:
        assert isinstance(error, RpcError)
        assert error.code == -32602
        assert error.message.startswith("Invalid params: ")
        assert error.data is not None
