"""The scripted provider: what a test lays out is what it says, however early it is warmed up."""

import json
from pathlib import Path

import anyio
import pytest

from agent_loop.errors import ProviderError
from agent_loop.llm.provider import ModelRequest
from agent_loop.llm.providers.scripted import Scripted

REQUEST = ModelRequest("scripted", "m1", [], session_id="s1")


async def test_a_script_is_read_once_though_warm_up_and_the_first_call_want_it_at_once(
    tmp_path: Path,
) -> None:
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"do": [{"text": "Once."}, {"finish": "stop"}]}) + "\n", "utf-8")
    provider = Scripted("scripted", str(script))

    async with anyio.create_task_group() as callers:
        callers.start_soon(provider.load)
        callers.start_soon(provider.load)

    assert [chunk async for chunk in provider.stream(REQUEST)]
    with pytest.raises(ProviderError, match="no line left"):
        [chunk async for chunk in provider.stream(REQUEST)]
