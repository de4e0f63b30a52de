"""An editor in memory on a real connection: peer, methods, bridge, harness and loop are the product's own.

Owns the conversation and its bounded waits. The real process and real stdio belong to `editor`.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel

from acp_server.bridge.connection import Connection
from acp_server.methods.table import methods
from acp_server.options.config_options import config_options
from acp_server.options.modes import modes
from acp_server.rpc.dispatch import Dispatcher
from acp_server.rpc.peer import Peer
from agent_loop import Harness, ModelState, StatusChanged, load_settings, open_harness
from tests.doubles.memory_model import WAIT_S, Bell, MemoryModel
from tests.doubles.transcript import Frame, Line, request_id_key, show

ONE_MODEL = ModelState("scripted/test", ("scripted/test",), None, ())
"""A session that has no other model to choose."""

OPENED: Frame = {"modes": modes("ask"), "configOptions": config_options("ask", ONE_MODEL)}
"""What an answer that opens a session says of what can be chosen, unless the settings say otherwise."""

INITIALIZE: Frame = {"protocolVersion": 1, "clientCapabilities": {}}


class MemoryEditor:
    """The editor's end.

    Attributes:
        transcript: Every frame both ways, in the order it was written.
        has_room: While false, whoever paces the stream waits.
    """

    def __init__(self, bell: Bell, cwd: Path) -> None:
        self.bell, self.cwd = bell, str(cwd)
        self.transcript: list[Line] = []
        self.responses: dict[str, Frame] = {}
        self.has_room = True
        self.peer = Peer(self)
        self.connection: Connection
        self.harness: Harness
        self._last_id = 0

    # What the connection sees of it.

    def write(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        frame = json.loads(line)
        self.transcript.append(Line("agent", frame=frame))
        if "method" not in frame:
            self.responses.setdefault(request_id_key(frame.get("id")), frame)
        self.bell.ring()

    async def room(self) -> None:
        await anyio.lowlevel.checkpoint()
        while not self.has_room:
            await self.bell.wait()

    # What it says.

    def say(self, **frame: Any) -> None:
        """Write one frame, completed with `jsonrpc`; the agent has taken it when this returns."""
        frame = {"jsonrpc": "2.0", **frame}
        self.transcript.append(Line("editor", frame=frame))
        self.peer.on_line(json.dumps(frame).encode())

    def send(self, method: str, **params: Any) -> int:
        """Write a request; its id."""
        self._last_id += 1
        self.say(id=self._last_id, method=method, params=params)
        return self._last_id

    def prompt(self, session: str, text: str = "Hello.") -> int:
        return self.send("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])

    def steer(self, session: str, text: str) -> int:
        return self.send("_agent_loop/steer", sessionId=session, prompt=[{"type": "text", "text": text}])

    def load(self, session: str) -> int:
        return self.send("session/load", sessionId=session, cwd=self.cwd, mcpServers=[])

    def cancel(self, session: str) -> None:
        self.say(method="session/cancel", params={"sessionId": session})

    def cancel_request(self, request: int) -> None:
        self.say(method="$/cancel_request", params={"requestId": request})

    def answer(self, request: Frame, option: str) -> None:
        """Answer a permission request by choosing an option."""
        outcome = {"outcome": "selected", "optionId": option}
        self.say(id=request["id"], result={"outcome": outcome})

    # What it waits for.

    async def until(self, condition: Callable[[], Any], what: str) -> None:
        """Wait until something holds, looking whenever anything happened."""
        with anyio.move_on_after(WAIT_S):
            while not condition():
                await self.bell.wait()
        assert condition(), f"waited in vain for {what}\n{show(self.transcript)}"

    async def answered(self, request: int) -> Frame:
        """The response frame to a request."""
        await self.until(lambda: self.answered_yet(request), f"the response to {request}")
        return self.responses[request_id_key(request)]

    async def result(self, request: int) -> Frame:
        """The result of a request that must have one."""
        response = await self.answered(request)
        assert "result" in response, response
        return dict(response["result"])

    async def error(self, request: int) -> Frame:
        """The error of a request that must have one."""
        response = await self.answered(request)
        assert "error" in response, response
        return dict(response["error"])

    def answered_yet(self, request: int) -> bool:
        return request_id_key(request) in self.responses

    async def new_session(self) -> str:
        """A fresh session's id."""
        made = await self.result(self.send("session/new", cwd=self.cwd, mcpServers=[]))
        return str(made["sessionId"])

    async def asked(self, number: int = 1) -> Frame:
        """The agent's nth permission request."""
        await self.until(lambda: len(self.questions()) >= number, f"permission request {number}")
        return self.questions()[number - 1]

    async def update(self, **pattern: Any) -> Frame:
        """The first update with these members."""

        def found() -> list[Frame]:
            return [u for u in self.updates() if all(u.get(key) == value for key, value in pattern.items())]

        await self.until(found, f"an update with {pattern}")
        return found()[0]

    # What it saw.

    def questions(self) -> list[Frame]:
        return [line.frame or {} for line in self.transcript if line.sender == "agent" and line.is_request]

    def updates(self, session: str | None = None) -> list[Frame]:
        return [line.update for line in self.transcript if line.update and session in (None, line.session)]

    def texts(self, session: str | None = None) -> list[str]:
        """The agent's message chunks."""
        found = [u for u in self.updates(session) if u["sessionUpdate"] == "agent_message_chunk"]
        return [update["content"]["text"] for update in found]

    def place_of(self, wanted: Callable[[Frame], bool]) -> int:
        """Where in the transcript the agent first said something like this."""
        for place, line in enumerate(self.transcript):
            if line.sender == "agent" and line.frame is not None and wanted(line.frame):
                return place
        raise AssertionError(f"the agent never said it\n{show(self.transcript)}")


@asynccontextmanager
async def connected(
    folder: Path,
    model: MemoryModel,
    *,
    flags: Mapping[str, str | None] | None = None,
    initialize: bool = True,
) -> AsyncIterator[MemoryEditor]:
    """A connection to a running harness with this model; sessions work in `folder/project`."""
    cwd = folder / "project"
    cwd.mkdir(exist_ok=True)
    flags = {"model": "scripted/test", **(flags or {})}
    loaded = load_settings(flags=flags, environ={}, state_dir=folder / "state")
    async with open_harness(loaded, {}) as harness, anyio.create_task_group() as handlers:
        harness.llm.register(model)
        editor = MemoryEditor(model.bell, cwd)
        editor.harness = harness
        harness.bus.on(StatusChanged, lambda _: model.bell.ring())
        editor.connection = Connection(harness, editor.peer, editor, handlers)
        editor.peer.dispatch = Dispatcher(methods(), editor.connection)
        if initialize:
            editor.send("initialize", **INITIALIZE)
        try:
            yield editor
        finally:
            editor.has_room = True
            with anyio.CancelScope(shield=True), anyio.fail_after(WAIT_S):
                await editor.connection.close()
            handlers.cancel_scope.cancel()
