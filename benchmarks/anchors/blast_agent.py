"""Not an agent to compare with: it writes ready-made lines as fast as a pipe takes them.

What the client reads from it is the client's own ceiling; figures near it say nothing about an agent.
"""

import json
import os
import sys

JOINED = 400


def update(at: int) -> bytes:
    """One line of the stream."""
    content = {"type": "text", "text": f"{at:07d} "}
    params = {"sessionId": "one", "update": {"sessionUpdate": "agent_message_chunk", "content": content}}
    return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": params}).encode() + b"\n"


def put(data: bytes) -> None:
    """Write all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


ready: list[bytes] = []
for text in sys.stdin:
    message = json.loads(text)
    result: dict[str, object] = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": 1}
    elif message["method"] == "session/new":
        result = {"sessionId": "one"}
    else:
        # The first prompt only prepares what the second one writes.
        deltas = int(message["params"]["prompt"][0]["text"].split()[1].removeprefix("deltas="))
        if ready:
            for block in ready:
                put(block)
        else:
            ready = [
                b"".join(update(at) for at in range(first, min(first + JOINED, deltas)))
                for first in range(0, deltas, JOINED)
            ]
        result = {"stopReason": "end_turn"}
    put(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n")
