"""What comes in: JSON-RPC's rules for every line, however broken, and the next one is fine."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.acp_server.rpc.ends import Ends, call

NOT_JSON = ["{oops", "{", '{"a":NaN}', "\ufeff{}", "\x00", '"\\x"', "[" * 2000]


@pytest.mark.parametrize("line", NOT_JSON)
def test_what_is_not_json_is_a_parse_error_with_id_null(line: str, ends: Ends) -> None:
    """bounty-challenge#51361: the id must be null when it cannot be read, never 0."""
    [answer] = ends.hear(line)

    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    assert ends.hear(call(id=1)) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


@pytest.mark.parametrize("line", ["[]", "[1]", "42", '"x"', "null", "true", '{"jsonrpc":"2.0","id":7}', "{}"])
def test_json_that_is_no_message_is_an_invalid_request(line: str, ends: Ends) -> None:
    """Scenario B04: valid JSON that is no request is -32600; ACP uses no batches."""
    [answer] = ends.hear(line)

    assert answer["error"]["code"] == -32600
    assert answer["id"] == (7 if "7" in line else None)


@pytest.mark.parametrize("line", ["", " ", "\r", "\t \r"])
def test_blank_lines_are_ignored(line: str, ends: Ends) -> None:
    """Scenario B04: an empty line is no message."""
    assert ends.hear(line) == []


def test_a_line_may_end_in_carriage_return(ends: Ends) -> None:
    """ACP, transports, as the SDK reads it: CR LF is accepted."""
    assert ends.hear('{"jsonrpc":"2.0","id":1,"method":"echo"}\r')[0]["result"] == {}


@pytest.mark.parametrize("message_id", [1, 0, -1, 2**63 - 1, "1", "", "ä", None])
def test_an_id_comes_back_with_its_value_and_its_type(message_id: object, ends: Ends) -> None:
    """ACP, schema RequestId: an integer, a string or null; echoed with the same JSON type."""
    [answer] = ends.hear(call(id=message_id))

    assert type(answer["id"]) is type(message_id)
    assert answer == {"jsonrpc": "2.0", "id": message_id, "result": {}}


@pytest.mark.parametrize("message_id", [1.5, True, {}, [], 2**70])
def test_no_other_id_is_taken(message_id: object, ends: Ends) -> None:
    """JSON-RPC 2.0: the answer to a request whose id cannot be read has id null."""
    [answer] = ends.hear(call(id=message_id))

    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert ends.calls == []


@pytest.mark.parametrize("method", [None, 5, {}, ["echo"]])
def test_a_method_must_be_text(method: object, ends: Ends) -> None:
    """JSON-RPC 2.0: otherwise the message is no request."""
    assert ends.hear(call(method, id=1))[0]["error"]["code"] == -32600


def test_an_unknown_method_is_not_found_and_an_unknown_notification_is_ignored(ends: Ends) -> None:
    """ACP, extensibility: an unknown request must be answered, an unknown notification should be ignored."""
    [answer] = ends.hear(call("_some/extension", id=3))

    assert (answer["id"], answer["error"]["code"]) == (3, -32601)
    assert ends.hear(call("_some/extension")) == []


@pytest.mark.parametrize("params", [[], [1], 5, "x", False])
def test_params_must_be_an_object(params: object, ends: Ends) -> None:
    """ACP: methods take named parameters."""
    [answer] = ends.hear(call(id=1, params=params))

    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"] == {"path": "params"}
    assert ends.hear(call(params=params)) == []
    assert ends.calls == []


def test_missing_and_null_params_are_no_params(ends: Ends) -> None:
    """Our promise: read leniently what can only mean one thing."""
    ends.hear(call(id=1))
    ends.hear(call(id=2, params=None))

    assert ends.calls == [{}, {}]


def test_members_nobody_knows_are_ignored(ends: Ends) -> None:
    """cline#10011: JetBrains adds a member `type` to each request."""
    [answer] = ends.hear(call(id=1, params={"a": 1}, type="x", extra={"b": 2}))

    assert answer["result"] == {"a": 1}


def test_a_line_that_is_too_long_is_an_invalid_request(ends: Ends) -> None:
    """kimi-cli#831: above the cap an error is answered and the server stays up."""
    ends.peer.on_oversize(64)

    [answer] = ends.said
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "64" in answer["error"]["message"]


@pytest.mark.parametrize(
    ("sent", "heard"),
    [
        (r"half \ud83d emoji", "half \ufffd emoji"),
        (r"half \uDE00 emoji", "half \ufffd emoji"),
        (r"\ud83d\ud83d\ude00\ud83d", "\ufffd\U0001f600\ufffd"),
        (r"whole \ud83d\ude00, \\ud83d, \"\n \ud83d", 'whole \U0001f600, \\ud83d, "\n \ufffd'),
    ],
)
def test_half_an_emoji_does_not_cost_the_whole_message(sent: str, heard: str, ends: Ends) -> None:
    """JSON's grammar allows an escaped lone surrogate, and JavaScript writes one for half a character."""
    ends.hear('{"jsonrpc":"2.0","id":1,"method":"echo","params":{"text":"' + sent + '"}}')

    assert ends.calls == [{"text": heard}]


def test_a_broken_line_with_half_an_emoji_is_still_a_parse_error(ends: Ends) -> None:
    """Scenario B04: bad JSON is -32700."""
    assert ends.hear(r'{"text":"\ud83d')[0]["error"]["code"] == -32700


MEMBERS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"])
_NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _NUMBERS | st.text() | st.just("echo"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(MEMBERS, inner, max_size=6),
)


@given(ANY_JSON)
def test_no_json_ends_the_reader_and_each_gets_one_answer_at_most(value: Any) -> None:
    """Scenario B04: the session ended silently at the first odd line."""
    ends = Ends()

    said = ends.hear(json.dumps(value))

    assert len(said) <= 1
    if isinstance(value, dict) and "id" not in value and isinstance(value.get("method"), str):
        assert said == []
    assert ends.hear(call(id=9))[-1] == {"jsonrpc": "2.0", "id": 9, "result": {}}


@given(st.binary(max_size=60).filter(lambda data: b"\n" not in data))
def test_no_bytes_end_the_reader(data: bytes) -> None:
    """Scenario B04."""
    ends = Ends()

    ends.hear(data)

    assert ends.hear(call(id=9))[-1] == {"jsonrpc": "2.0", "id": 9, "result": {}}
