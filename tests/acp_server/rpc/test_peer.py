"""The peer: exactly one answer for each request, none for a notification, and nothing of our insides."""

import logging

import pytest

from acp_server.errors import RpcError
from acp_server.rpc.peer import Peer
from acp_server.rpc.pending import Pending
from tests.acp_server.rpc.ends import Ends, call


@pytest.mark.parametrize("method", ["echo", "wait", "fail", "odd", "nobody"])
def test_a_notification_is_never_answered(method: str, ends: Ends) -> None:
    """ACP, overview: not even with an error."""
    assert ends.hear(call(method)) == []
    for pending in ends.pendings:
        pending.settle({"late": True})
    assert ends.said == []


def test_the_text_of_an_unknown_exception_never_leaves(ends: Ends, caplog: pytest.LogCaptureFixture) -> None:
    """Contracts 5: our words only; the log has the details."""
    [answer] = ends.hear(call("fail", id=1))

    assert answer["error"]["code"] == -32603
    assert "secret" not in str(answer)
    assert "secret detail" in caplog.text


@pytest.mark.parametrize("later", [False, True])
def test_a_result_that_is_no_json_is_an_internal_error(later: bool, ends: Ends) -> None:
    """Our promise: every request gets exactly one answer, whatever a method returns."""
    if later:
        ends.hear(call("wait", id=1))
        ends.pendings[0].settle(object())
    else:
        ends.hear(call("odd", id=1))

    [answer] = ends.said
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)


def test_a_dispatcher_that_raises_is_answered_and_ends_nothing(ends: Ends) -> None:
    """Our promise: no line, however broken, ends the reader."""
    right = ends.peer.dispatch

    def explode(_: object) -> Pending | None:
        raise RuntimeError("secret detail")

    ends.peer.dispatch = explode
    [answer] = ends.hear(call(id=1))
    silent = ends.hear(call())
    ends.peer.dispatch = right

    assert (answer["id"], answer["error"]["code"], silent) == (1, -32603, [])
    assert "secret" not in str(answer)
    assert ends.hear(call(id=2))[0]["result"] == {}


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
    assert ends.hear(call("wait", id="p")) == []

    ends.pendings[0].settle({"stopReason": "end_turn"})
    ends.pendings[0].fail(RpcError(-32603, "late"))

    assert ends.said == [{"jsonrpc": "2.0", "id": "p", "result": {"stopReason": "end_turn"}}]


def test_an_error_keeps_its_data(ends: Ends) -> None:
    """ACP, errors: code, one short sentence, and data a program can use."""
    ends.hear(call("wait", id=1))

    ends.pendings[0].fail(RpcError(-32000, "No key.", {"path": "KEY"}))

    assert ends.said[0]["error"] == {"code": -32000, "message": "No key.", "data": {"path": "KEY"}}


def test_a_cancel_reaches_the_request_of_that_id_and_type_while_it_is_open(ends: Ends) -> None:
    """ACP, cancellation: unknown and finished ids are ignored."""
    told: list[str] = []
    for message_id in (1, "1", 2):
        ends.hear(call("wait", id=message_id))
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
    ends.hear(call("wait", id=1))

    ends.peer.cancel_request(1)

    assert ends.said == []


def test_an_id_used_twice_at_once_gets_both_answers(ends: Ends) -> None:
    """Our promise: a careless editor gets one answer per request, and the later one can be cancelled."""
    ends.hear(call("wait", id=1))
    ends.hear(call("wait", id=1))
    cancelled: list[int] = []
    ends.pendings[1].on_cancel = lambda: cancelled.append(1)

    ends.pendings[0].settle("first")
    ends.peer.cancel_request(1)
    ends.pendings[1].settle("second")

    assert [answer["result"] for answer in ends.said] == ["first", "second"]
    assert cancelled == [1]


def test_jsonrpcserver_logs_nothing_of_what_was_said() -> None:
    """Contracts 13: its own logger prints parameters, which hold prompts and secrets."""
    assert logging.getLogger("jsonrpcserver").disabled
    assert logging.getLogger("jsonrpcserver.dispatcher").disabled


def test_messages_are_one_line_of_json(ends: Ends) -> None:
    """ACP, transports: no raw newline inside a message."""
    ends.peer.notify("session/update", {"text": "a\nb\u2028c"})

    assert ends.said == [{"jsonrpc": "2.0", "method": "session/update", "params": {"text": "a\nb\u2028c"}}]
