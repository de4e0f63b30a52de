"""Lines of any length and any content: answered, and the server stays up."""

import json
from typing import Any

import pytest

from acp_server.transport.framing import LINE_CAP_BYTES
from tests.process.server import DONE, Server


@pytest.mark.parametrize("size", [64 * 1024 + 1, 2**20, 12 * 2**20])
def test_a_long_prompt_is_a_prompt(size: int, server: Server) -> None:
    """kimi-cli#831: the server died of a line over 64 KiB."""
    server.start(DONE)
    server.initialize()
    session = server.new_session()

    answer = server.run(session, "é" + "x" * size)

    assert answer["result"] == {"stopReason": "end_turn"}
    [said] = [fact["data"] for fact in server.facts(session) if fact["type"] == "user/message"]
    assert len(said["content"][0]["text"]) == size + 1
    assert server.leave() == 0


def test_a_line_over_the_cap_is_refused_and_the_next_is_answered(server: Server) -> None:
    """Scenario B01: above the cap, answer an error and stay up."""
    editor = server.start(DONE)
    server.initialize()

    block = b"x" * 2**20
    for _ in range(70):
        editor.child.write(block, editor.timeout_s)  # type: ignore[union-attr]
    editor.child.write(b"\n", editor.timeout_s)  # type: ignore[union-attr]

    error = editor.wait_response(None)["error"]
    assert (error["code"], str(LINE_CAP_BYTES) in error["message"]) == (-32600, True)
    assert server.run(server.new_session())["result"] == {"stopReason": "end_turn"}
    assert server.leave() == 0


def test_broken_lines_and_whole_ones_in_one_write(server: Server) -> None:
    """Scenarios B04, B05: each gets its answer, with id null where none can be read."""
    editor = server.start()
    request = {"jsonrpc": "2.0", "id": "whole", "method": "initialize", "params": {"protocolVersion": 1}}
    lines = ["{", "\xff\xfe", "[]", "42", "", "\r", json.dumps(request) + "\r", '{"id":7}']

    editor.write_bytes("".join(f"{line}\n" for line in lines).encode("latin-1"))
    editor.wait_response(7)

    said = [line.frame or {} for line in editor.transcript if line.sender == "agent"]
    assert [(frame["id"], frame.get("error", {}).get("code")) for frame in said] == [
        (None, -32700),
        (None, -32700),
        (None, -32600),
        (None, -32600),
        ("whole", None),
        (7, -32600),
    ]
    assert server.leave() == 0


def test_members_nobody_knows_change_nothing(server: Server) -> None:
    """cline#10011: JetBrains adds a member `type` to each request; unknown capabilities are none."""
    editor = server.start(DONE)
    extra = {"type": "x", "extra": {"a": 1}}
    capabilities = {"fs": {"readTextFile": True, "teleport": 1}, "holograms": True, "_meta": {"b": [2]}}
    blocks = [{"type": "text", "text": "Hello.", "annotations": {"audience": ["user"]}, "extra": 1}]
    steps: tuple[tuple[str, dict[str, Any]], ...] = (
        ("initialize", {"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": extra}),
        ("session/new", {"cwd": str(server.cwd), "mcpServers": [], **extra}),
        ("session/prompt", {"prompt": blocks, "_meta": {"c": 3}, **extra}),
    )

    session: dict[str, str] = {}
    result: dict[str, Any] = {}
    for number, (method, params) in enumerate(steps, 1):
        editor.write([{"id": number, "method": method, "params": {**params, **session}, **extra}])
        result = editor.wait_response(number)["result"]
        session = {key: value for key, value in result.items() if key == "sessionId"}

    assert result == {"stopReason": "end_turn"}
    assert server.leave() == 0


def test_half_an_emoji_in_a_prompt_reaches_the_model_as_a_replacement(server: Server) -> None:
    """JavaScript cuts a string between two halves of a character and sends the half as an escape."""
    server.start([{"text": "Done."}, {"finish": "stop"}])
    server.initialize()
    session = server.new_session()

    assert server.run(session, "cut \ud83d")["result"] == {"stopReason": "end_turn"}

    [said] = [fact["data"] for fact in server.facts(session) if fact["type"] == "user/message"]
    assert said["content"][0]["text"] == "cut \ufffd"
    assert server.leave() == 0
