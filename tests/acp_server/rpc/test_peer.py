"""The peer: JSON-RPC's rules for what comes in, and exactly one answer for each request."""

import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_server.errors import RpcError
from acp_server.rpc.dispatch import Dispatcher
from acp_server.rpc.peer import Peer
from acp_server.rpc.pending import Pending

NOT_JSON = ["{oops", "{", '{"a":NaN}', "\ufeff{}", "\x00", '"\\x"', "[" * 2000]


class Ends:
    """A peer with a list for a wire and a table of small methods behind it."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.pendings: list[Pending] = []
        self.calls: list[dict[str, Any]] = []
        self.peer = Peer(self)
        methods = {"echo": self._echo, "wait": self._wait, "fail": self._fail, "odd": self._odd}
        self.peer.dispatch = Dispatcher(methods, self)

    def write(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        assert b"\n" not in line[:-1]
        self.said.append(json.loads(line))

    def hear(self, line: str | bytes | dict[str, Any]) -> list[dict[str, Any]]:
        """Take a line; what was said because of it."""
        before = len(self.said)
        if isinstance(line, dict):
            line = json.dumps(line)
        self.peer.on_line(line.encode() if isinstance(line, str) else line)
        return self.said[before:]

    def _echo(self, ends: "Ends", /, **params: Any) -> dict[str, Any]:
        self.calls.append(params)
        return params

    def _wait(self, ends: "Ends", /, **params: Any) -> Pending:
        self.pendings.append(Pending())
        return self.pendings[-1]

    def _fail(self, ends: "Ends", /, **params: Any) -> None:
        raise RuntimeError("secret detail")

    def _odd(self, ends: "Ends", /, **params: Any) -> object:
        return object()


@pytest.fixture
def ends() -> Ends:
    return Ends()


def _call(method: object = "echo", **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, **members}


@pytest.mark.parametrize("line", NOT_JSON)
def test_what_is_not_json_is_a_parse_error_with_id_null(line: str, ends: Ends) -> None:
    """bounty-challenge#51361: the id must be null when it cannot be read, never 0."""
    [answer] = ends.hear(line)

    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    assert ends.hear(_call(id=1)) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


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
    [answer] = ends.hear(_call(id=message_id))

    assert type(answer["id"]) is type(message_id)
    assert answer == {"jsonrpc": "2.0", "id": message_id, "result": {}}


@pytest.mark.parametrize("message_id", [1.5, True, {}, [], 2**70])
def test_no_other_id_is_taken(message_id: object, ends: Ends) -> None:
    """JSON-RPC 2.0: the answer to a request whose id cannot be read has id null."""
    [answer] = ends.hear(_call(id=message_id))

    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert ends.calls == []


@pytest.mark.parametrize("method", [None, 5, {}, ["echo"]])
def test_a_method_must_be_text(method: object, ends: Ends) -> None:
    """JSON-RPC 2.0: otherwise the message is no request."""
    assert ends.hear(_call(method, id=1))[0]["error"]["code"] == -32600


def test_an_unknown_method_is_not_found_and_an_unknown_notification_is_ignored(ends: Ends) -> None:
    """ACP, extensibility: an unknown request must be answered, an unknown notification should be ignored."""
    [answer] = ends.hear(_call("_some/extension", id=3))

    assert (answer["id"], answer["error"]["code"]) == (3, -32601)
    assert ends.hear(_call("_some/extension")) == []


@pytest.mark.parametrize("params", [[], [1], 5, "x", False])
def test_params_must_be_an_object(params: object, ends: Ends) -> None:
    """ACP: methods take named parameters."""
    [answer] = ends.hear(_call(id=1, params=params))

    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"] == {"path": "params"}
    assert ends.hear(_call(params=params)) == []
    assert ends.calls == []


def test_missing_and_null_params_are_no_params(ends: Ends) -> None:
    """Our promise: read leniently what can only mean one thing."""
    ends.hear(_call(id=1))
    ends.hear(_call(id=2, params=None))

    assert ends.calls == [{}, {}]


def test_members_nobody_knows_are_ignored(ends: Ends) -> None:
    """cline#10011: JetBrains adds a member `type` to each request."""
    [answer] = ends.hear(_call(id=1, params={"a": 1}, type="x", extra={"b": 2}))

    assert answer["result"] == {"a": 1}


@pytest.mark.parametrize("method", ["echo", "wait", "fail", "odd", "nobody"])
def test_a_notification_is_never_answered(method: str, ends: Ends) -> None:
    """ACP, overview: not even with an error."""
    assert ends.hear(_call(method)) == []
    for pending in ends.pendings:
        pending.settle({"late": True})
    assert ends.said == []


def test_the_text_of_an_unknown_exception_never_leaves(ends: Ends, caplog: pytest.LogCaptureFixture) -> None:
    """Contracts 5: our words only; the log has the details."""
    [answer] = ends.hear(_call("fail", id=1))

    assert answer["error"]["code"] == -32603
    assert "secret" not in str(answer)
    assert "secret detail" in caplog.text


@pytest.mark.parametrize("later", [False, True])
def test_a_result_that_is_no_json_is_an_internal_error(later: bool, ends: Ends) -> None:
    """Our promise: every request gets exactly one answer, whatever a method returns."""
    if later:
        ends.hear(_call("wait", id=1))
        ends.pendings[0].settle(object())
    else:
        ends.hear(_call("odd", id=1))

    [answer] = ends.said
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)


def test_a_dispatcher_that_raises_is_answered_and_ends_nothing(ends: Ends) -> None:
    """Our promise: no line, however broken, ends the reader."""
    right = ends.peer.dispatch

    def explode(_: object) -> Pending | None:
        raise RuntimeError("secret detail")

    ends.peer.dispatch = explode
    [answer] = ends.hear(_call(id=1))
    silent = ends.hear(_call())
    ends.peer.dispatch = right

    assert (answer["id"], answer["error"]["code"], silent) == (1, -32603, [])
    assert "secret" not in str(answer)
    assert ends.hear(_call(id=2))[0]["result"] == {}


def test_before_anybody_dispatches_nothing_is_said() -> None:
    """Our promise: a peer can be built before what it serves."""
    said: list[bytes] = []

    class Wire:
        def write(self, line: bytes) -> None:
            said.append(line)

    Peer(Wire()).on_line(b'{"jsonrpc":"2.0","id":1,"method":"echo"}')

    assert said == []


def test_a_pending_answer_goes_out_when_it_is_settled_and_only_once(ends: Ends) -> None:
    """claude-agent-acp#551: a second stop reason came with the next prompt."""
    assert ends.hear(_call("wait", id="p")) == []

    ends.pendings[0].settle({"stopReason": "end_turn"})
    ends.pendings[0].fail(RpcError(-32603, "late"))

    assert ends.said == [{"jsonrpc": "2.0", "id": "p", "result": {"stopReason": "end_turn"}}]


def test_an_error_keeps_its_data(ends: Ends) -> None:
    """ACP, errors: code, one short sentence, and data a program can use."""
    ends.hear(_call("wait", id=1))

    ends.pendings[0].fail(RpcError(-32000, "No key.", {"path": "KEY"}))

    assert ends.said[0]["error"] == {"code": -32000, "message": "No key.", "data": {"path": "KEY"}}


def test_a_cancel_reaches_the_request_of_that_id_and_type_while_it_is_open(ends: Ends) -> None:
    """ACP, cancellation: unknown and finished ids are ignored."""
    told: list[str] = []
    for message_id in (1, "1", 2):
        ends.hear(_call("wait", id=message_id))
    one, text_one, two = ends.pendings
    one.on_cancel = lambda: told.append("1")
    text_one.on_cancel = lambda: told.append("'1'")
    two.on_cancel = lambda: told.append("2")
    two.settle({})

    asked: list[object] = [2, 3, None, 1.5, [], "1"]
    for request_id in asked:
        ends.peer.cancel_request(request_id)

    assert told == ["'1'"]


def test_a_request_that_cannot_be_cancelled_is_left_alone(ends: Ends) -> None:
    """ACP, cancellation: honouring it is optional, failing at it is not."""
    ends.hear(_call("wait", id=1))

    ends.peer.cancel_request(1)

    assert ends.said == []


def test_an_id_used_twice_at_once_gets_both_answers(ends: Ends) -> None:
    """Our promise: a careless editor gets one answer per request, and the later one can be cancelled."""
    ends.hear(_call("wait", id=1))
    ends.hear(_call("wait", id=1))
    cancelled: list[int] = []
    ends.pendings[1].on_cancel = lambda: cancelled.append(1)

    ends.pendings[0].settle("first")
    ends.peer.cancel_request(1)
    ends.pendings[1].settle("second")

    assert [answer["result"] for answer in ends.said] == ["first", "second"]
    assert cancelled == [1]


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
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("echo"),
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
    assert ends.hear(_call(id=9))[-1] == {"jsonrpc": "2.0", "id": 9, "result": {}}


@given(st.binary(max_size=60).filter(lambda data: b"\n" not in data))
def test_no_bytes_end_the_reader(data: bytes) -> None:
    """Scenario B04."""
    ends = Ends()

    ends.hear(data)

    assert ends.hear(_call(id=9))[-1] == {"jsonrpc": "2.0", "id": 9, "result": {}}


def test_jsonrpcserver_logs_nothing_of_what_was_said() -> None:
    """Contracts 13: its own logger prints parameters, which hold prompts and secrets."""
    assert logging.getLogger("jsonrpcserver").disabled
    assert logging.getLogger("jsonrpcserver.dispatcher").disabled


def test_messages_are_one_line_of_json(ends: Ends) -> None:
    """ACP, transports: no raw newline inside a message."""
    ends.peer.notify("session/update", {"text": "a\nb\u2028c"})

    assert ends.said == [{"jsonrpc": "2.0", "method": "session/update", "params": {"text": "a\nb\u2028c"}}]
