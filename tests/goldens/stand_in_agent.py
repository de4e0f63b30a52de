"""A stand-in for the server, to test the harness itself: small, honest, or broken in one named way.

Speaks as much ACP and as much of the control protocol (`control`) as the harness's tests need: text, tools
without effect, holds, hangs, cancel, load. `--fault NAME` breaks one rule; see `FAULTS`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tomllib
from pathlib import Path
from typing import Any

Json = dict[str, Any]
FAULTS = (
    "late-update",  # an update after the answer
    "unfinished-card",  # a tool call still pending when its turn is answered
    "unannounced-card",  # a tool_call_update without its tool_call
    "junk",  # a line on stdout that is no protocol
    "chatter",  # a line on stderr
    "misspelt",  # an optional field with a wrong name
    "mute-afterwards",  # answers one prompt, then no more
    "forgetful",  # a load replays only part of the session
    "unknown-tool",  # the log holds a tool result with that code
    "answers-twice",
)


class StandIn:
    def __init__(self, state: Path, fault: str) -> None:
        self.state, self.fault = state, fault
        settings = tomllib.loads((state / "config.toml").read_text())["providers"]["scripted"]
        self.script = [json.loads(line) for line in Path(settings["script"]).read_text().splitlines()]
        self.control = settings["control"].split(":")
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None
        self.calls = 0
        self.answers: dict[int, asyncio.Queue[Json]] = {}
        self.turns: dict[str, asyncio.Task[None]] = {}
        self.sessions = 0
        self.prompts = 0

    def say(self, frame: Json) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
        sys.stdout.flush()

    def update(self, session: str, update: Json) -> None:
        self.say({"method": "session/update", "params": {"sessionId": session, "update": update}})
        self.store(session, "update", update)

    def store(self, session: str, kind: str, data: Json) -> None:
        with (self.state / "sessions" / f"{session}.jsonl").open("a") as log:
            log.write(json.dumps({"seq": 0, "time": 123, "type": kind, "data": data}) + "\n")

    async def serve(self) -> None:
        stdin = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin
        )
        if self.fault == "junk":
            sys.stdout.write("Welcome!\n")
        if self.fault == "chatter":
            sys.stderr.write("warming up\n")
        while line := await stdin.readline():
            self.take(json.loads(line))
        for turn in self.turns.values():
            turn.cancel()
        await asyncio.gather(*self.turns.values(), return_exceptions=True)

    def take(self, frame: Json) -> None:
        params = frame.get("params", {})
        match frame.get("method"):
            case "initialize":
                info = {"name": "stand-in", "version": "9.9"}
                result: Json = {
                    "protocolVersion": 1,
                    "agentCapabilities": {"loadSession": True},
                    "agentInfo": info,
                }
            case "session/new":
                self.sessions += 1
                session = f"session-{self.sessions}-{id(self):x}"
                (self.state / "sessions").mkdir(exist_ok=True)
                header = {"type": "session", "version": 1, "id": session}
                (self.state / "sessions" / f"{session}.jsonl").write_text(json.dumps(header) + "\n")
                result = {"sessionId": session}
            case "session/load":
                result = self.replay(params["sessionId"])
            case "session/prompt":
                self.turns[params["sessionId"]] = asyncio.create_task(
                    self.turn(frame["id"], params["sessionId"])
                )
                return
            case "session/cancel":
                self.turns[params["sessionId"]].cancel()
                return
            case _:
                self.say({"id": frame["id"], "error": {"code": -32601, "message": "no such method"}})
                return
        self.say({"id": frame["id"], "result": result})

    def replay(self, session: str) -> Json:
        _, *rows = (self.state / "sessions" / f"{session}.jsonl").read_text().splitlines()
        for row in rows[1:] if self.fault == "forgetful" else rows:
            if json.loads(row)["type"] == "update":
                params = {"sessionId": session, "update": json.loads(row)["data"]}
                self.say({"method": "session/update", "params": params})
        return {}

    async def turn(self, request: object, session: str) -> None:
        self.prompts += 1
        if self.fault == "mute-afterwards" and self.prompts > 1:
            return
        self.calls += 1
        call, reason = self.calls, "end_turn"
        try:
            taken = await self.ask(call, {"event": "begin", "session": session})
            for item in self.script[taken["take"]]["do"]:
                await self.do(call, session, item)
        except asyncio.CancelledError:
            reason = "cancelled"
        finally:
            self.tell(call, {"event": "end"})
        self.say({"id": request, "result": {"stopReason": reason}})
        if self.fault == "answers-twice":
            self.say({"id": request, "result": {"stopReason": reason}})
        if self.fault == "late-update":
            self.text(session, "one more thing")

    async def do(self, call: int, session: str, item: Json) -> None:
        match item:
            case {"text": text}:
                self.text(session, text)
            case {"tool": name, "id": call_id}:
                self.tool(session, name, call_id)
            case {"hold": name}:
                await self.ask(call, {"event": "hold", "name": name})
            case {"hang": True}:
                await self.ask(call, {"event": "hang"})

    def text(self, session: str, text: str) -> None:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        self.update(
            session, {**update, "mesageId" if self.fault == "misspelt" else "messageId": f"m{self.prompts}"}
        )

    def tool(self, session: str, name: str, call_id: str) -> None:
        if self.fault != "unannounced-card":
            self.update(session, {"sessionUpdate": "tool_call", "toolCallId": call_id, "title": name})
        if self.fault != "unfinished-card":
            done = {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "status": "completed"}
            self.update(session, done)
        if self.fault == "unknown-tool":
            self.store(session, "tool/result", {"callId": call_id, "errorCode": "UNKNOWN_TOOL"})

    async def ask(self, call: int, event: Json) -> Json:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.control[0], int(self.control[1]))
            self.listening = asyncio.create_task(self.listen(self.reader))
        answers = self.answers.setdefault(call, asyncio.Queue())
        self.tell(call, event)
        return await answers.get()

    def tell(self, call: int, event: Json) -> None:
        if self.writer is not None:
            self.writer.write(json.dumps({**event, "call": call}).encode() + b"\n")

    async def listen(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            answer = json.loads(line)
            self.answers[answer["call"]].put_nowait(answer)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    parser.add_argument("--state-dir", type=Path, required=True)
    arguments = parser.parse_args()
    asyncio.run(StandIn(arguments.state_dir, arguments.fault).serve())
