"""A real language model behind the OpenAI-compatible provider: whatever it says, the protocol holds.

Skipped unless `ACP_TEST_BASE_URL` names an endpoint on this machine (README, "Against a real model"). What a
model says is not ours to promise, so nothing is asserted of its words.
"""

import json
import os
from urllib.request import urlopen

import pytest

from tests.process.server import Server

BASE_URL = os.environ.get("ACP_TEST_BASE_URL", "")
PATIENCE_S = 240.0

pytestmark = pytest.mark.skipif(not BASE_URL, reason="no model: ACP_TEST_BASE_URL is not set")


@pytest.fixture
def connected(server: Server) -> Server:
    """A server that was told nothing but where the model is, plan mode aside: it may change nothing here."""
    with urlopen(f"{BASE_URL}/models", timeout=10) as answer:
        name = json.load(answer)["data"][0]["id"]
    server.env |= {"OPENAI_BASE_URL": BASE_URL}
    server.launch(flags=["--model", f"openai/{name}", "--permission-mode", "plan"])
    server.editor.timeout_s = PATIENCE_S
    server.initialize()
    return server


def test_a_conversation_of_turns_and_tools(connected: Server) -> None:
    """Issue "Real models": with a base URL and a model alone, an editor holds a conversation."""
    (connected.cwd / "notes.txt").write_text("The harbour opens at nine.\n")
    session = connected.new_session()

    ends = [connected.run(session, text) for text in ("Read notes.txt.", "What did it say?")]

    assert {it["result"]["stopReason"] for it in ends} <= {"end_turn", "max_tokens"}
    types = [fact["type"] for fact in connected.facts(session)]
    assert types.count("assistant/message") >= 2
    assert types.count("tool/call") == types.count("tool/result")
    assert connected.leave() == 0


def test_a_stream_that_is_cancelled_leaves_a_session_that_goes_on(connected: Server) -> None:
    """Issue "Real models": Stop closes the stream; the next prompt is answered."""
    session = connected.new_session()
    prompt = connected.prompt(session, "Tell me a long story.")
    connected.editor.wait_update({"sessionUpdate": "agent_message_chunk"}, session)

    connected.editor.notify("session/cancel", {"sessionId": session})

    assert connected.editor.wait_response(prompt)["result"]["stopReason"] == "cancelled"
    assert connected.run(session, "Go on.")["result"]["stopReason"] in ("end_turn", "max_tokens")
    assert connected.leave() == 0
