"""Anchor (a): the least a streaming agent on the public Python ACP SDK can be."""

import asyncio
from typing import Any, cast
from uuid import uuid4

from acp import (
    Agent,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    run_agent,
    text_block,
    update_agent_message,
)


class SdkAgent:
    """Says what the prompt asks for, piece by piece, as the SDK's own examples do."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Event] = {}

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid4().hex)

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self._running:
            self._running[session_id].set()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        plan = dict(word.split("=") for word in prompt[0].text.split()[1:])
        deltas, pause_s = int(plan["deltas"]), float(plan["pause_ms"]) / 1000
        cancelled = self._running[session_id] = asyncio.Event()
        for at in range(deltas):
            update = update_agent_message(text_block(f"{at:07d} "))
            await self._client.session_update(session_id=session_id, update=update)
            if pause_s:
                await asyncio.sleep(pause_s)
            if cancelled.is_set():
                return PromptResponse(stop_reason="cancelled")
        return PromptResponse(stop_reason="end_turn")


asyncio.run(run_agent(cast(Agent, SdkAgent())))
