"""Anchor (b): the floor, an agent written by hand on asyncio and orjson with one write per loop tick.

No library, no models, no log: what is left is what the protocol itself costs in Python.
"""

import asyncio
import sys
from typing import Any

import orjson

PACE_EVERY = 64


class Floor(asyncio.Protocol):
    """Both ends of stdio, and the agent between them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.gone = asyncio.Event()
        self._loop = loop
        self._rest = b""
        self._out: asyncio.WriteTransport | None = None
        self._queue: list[bytes] = []
        self._room = asyncio.Event()
        self._room.set()
        self._sessions = 0
        self._turns: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            self._out = transport

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._on_message(orjson.loads(line))

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone.set()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def _on_message(self, message: dict[str, Any]) -> None:
        params = message["params"]
        match message["method"]:
            case "initialize":
                self._answer(message, {"protocolVersion": 1, "agentCapabilities": {}})
            case "session/new":
                self._sessions += 1
                self._answer(message, {"sessionId": f"session-{self._sessions}"})
            case "session/prompt":
                task = self._loop.create_task(self._prompt(message, params))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case "session/cancel":
                if params["sessionId"] in self._turns:
                    self._turns[params["sessionId"]].set()

    async def _prompt(self, message: dict[str, Any], params: dict[str, Any]) -> None:
        session = params["sessionId"]
        plan = dict(word.split("=") for word in params["prompt"][0]["text"].split()[1:])
        pause_s = float(plan["pause_ms"]) / 1000
        cancelled = self._turns[session] = asyncio.Event()
        stop = "end_turn"
        for at in range(int(plan["deltas"])):
            update = {
                "sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": f"{at:07d} "},
            }
            self._send({"method": "session/update", "params": {"sessionId": session, "update": update}})
            if pause_s:
                await asyncio.sleep(pause_s)
            elif at % PACE_EVERY == PACE_EVERY - 1:
                await asyncio.sleep(0)
                await self._room.wait()
            if cancelled.is_set():
                stop = "cancelled"
                break
        self._answer(message, {"stopReason": stop})

    def _answer(self, message: dict[str, Any], result: dict[str, Any]) -> None:
        self._send({"id": message["id"], "result": result})

    def _send(self, message: dict[str, Any]) -> None:
        if not self._queue:
            self._loop.call_soon(self._flush)
        self._queue.append(orjson.dumps({"jsonrpc": "2.0", **message}, option=orjson.OPT_APPEND_NEWLINE))

    def _flush(self) -> None:
        assert self._out is not None
        self._out.write(b"".join(self._queue))
        self._queue.clear()


async def main() -> None:
    """Serve until stdin closes."""
    loop = asyncio.get_running_loop()
    floor = Floor(loop)
    await loop.connect_write_pipe(lambda: floor, sys.stdout)
    await loop.connect_read_pipe(lambda: floor, sys.stdin)
    await floor.gone.wait()


asyncio.run(main())
