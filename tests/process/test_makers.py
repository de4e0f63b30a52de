"""With a key, an address and a model's name alone, an editor holds a conversation of turns and tools."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from anyio import to_thread

from agent_loop.chunks import Chunk, Finish, TextDelta, ToolCallDelta
from tests.doubles import anthropic_wire, openai_wire
from tests.doubles.provider_server import Reply, provider_server
from tests.process.server import Server

LOOK: Sequence[Chunk] = [
    TextDelta(0, "I look at both."),
    ToolCallDelta(1, "c1", "read", '{"path": "a.txt"}'),
    ToolCallDelta(2, "c2", "list", "{}"),
    Finish("tool-calls"),
]
FOUND: Sequence[Chunk] = [TextDelta(0, "It says one."), Finish("stop")]
CHANGE: Sequence[Chunk] = [
    ToolCallDelta(0, "c3", "write", '{"path": "b.txt", "content": "two\\n"}'),
    Finish("tool-calls"),
]
CHANGED: Sequence[Chunk] = [TextDelta(0, "Written."), Finish("stop")]

Wire = Callable[[Sequence[Chunk]], list[bytes]]


@pytest.mark.parametrize(
    ("maker", "events_of", "problem", "folder"),
    [
        ("openai", openai_wire.events_of, openai_wire.problem, "/v1"),
        ("anthropic", anthropic_wire.events_of, anthropic_wire.problem, ""),
    ],
    ids=["openai", "anthropic"],
)
async def test_a_conversation_of_several_turns_and_tools(
    maker: str, events_of: Wire, problem: Callable[[Any], str | None], folder: str, server: Server
) -> None:
    """Issue "Real models", done when: only the base URL, the key and `--model` are set."""
    (server.cwd / "a.txt").write_text("one\n")
    async with provider_server(problem) as endpoint:
        endpoint.plan(*(Reply(events_of(answer)) for answer in (LOOK, FOUND, CHANGE, CHANGED)))
        place = endpoint.base_url.removesuffix("/v1") + folder
        server.env |= {f"{maker.upper()}_BASE_URL": place, f"{maker.upper()}_API_KEY": "k"}

        def talk() -> list[Any]:
            server.launch(flags=["--model", f"{maker}/m"])
            server.initialize()
            session = server.new_session()
            first = server.run(session, "What is in a.txt?")
            second = server.prompt(session, "Now write b.txt.")
            server.allow()
            return [first["result"], server.editor.wait_response(second)["result"]]

        answers = await to_thread.run_sync(talk)

    assert [answer["stopReason"] for answer in answers] == ["end_turn", "end_turn"]
    assert (server.cwd / "b.txt").read_text() == "two\n"
    assert len(endpoint.requests) == 4
    assert b"one" in endpoint.requests[1].raw
    assert server.leave() == 0
