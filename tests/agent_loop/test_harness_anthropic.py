"""A conversation with Anthropic's format, from the variables in the environment to the log and back."""

from pathlib import Path

import anyio

from agent_loop.chunks import BlockEnd, Chunk, Finish, ReasoningDelta, TextDelta, ToolCallDelta
from agent_loop.config.load import load_settings
from agent_loop.harness import open_harness
from agent_loop.messages import Text
from tests.doubles import anthropic_wire
from tests.doubles.provider_server import Reply, provider_server

WAIT_S = 20.0


async def test_two_variables_and_a_model_are_enough_and_signatures_survive_a_restart(tmp_path: Path) -> None:
    """Issue "Real models": a multi-turn conversation with tools; Anthropic: thoughts return unmodified."""
    (tmp_path / "a.md").write_text("the answer")
    thought: list[Chunk] = [ReasoningDelta(0, "Look."), BlockEnd(0, opaque={"signature": "c2ln"})]
    call = ToolCallDelta(1, "toolu_1", "read", '{"path": "a.md"}')
    hello = anthropic_wire.events_of([TextDelta(0, "hello"), Finish("stop")])

    async with provider_server(anthropic_wire.problem) as server:
        server.plan(
            Reply(anthropic_wire.events_of([*thought, call, Finish("tool-calls")])), *[Reply(hello)] * 2
        )
        settings = load_settings(
            flags={"model": "anthropic/claude"}, environ={}, state_dir=tmp_path / "state"
        )
        environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": server.base_url.removesuffix("/v1")}

        async with open_harness(settings, environ) as harness:
            handle = await harness.create_session(str(tmp_path))
            handle.agent.send((Text("what is it?"),))
            with anyio.fail_after(WAIT_S):
                await handle.agent.when_idle()
            session_id = handle.agent.session.id
            await handle.dispose()

        async with open_harness(settings, environ) as harness:
            handle = await harness.resume_session(session_id)
            handle.agent.send((Text("thanks"),))
            with anyio.fail_after(WAIT_S):
                await handle.agent.when_idle()
            await handle.dispose()

        first, second, third = [request.body["messages"] for request in server.requests]
        assert [block["type"] for block in second[1]["content"]] == ["thinking", "tool_use"]
        assert "the answer" in str(second[2]["content"][0]["content"])
        assert second[1] == third[1]
        assert [message["role"] for message in third] == ["user", "assistant"] * 2 + ["user"]
        assert first[0]["content"][-1]["cache_control"] == {"type": "ephemeral"}
