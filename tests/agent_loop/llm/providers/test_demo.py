"""The scripted tour: what it says and does, step by step, whatever the tools answer."""

import json

import anyio
import pytest

from agent_loop.chunks import Finish, ReasoningDelta, TextDelta
from agent_loop.llm.collect import Collector
from agent_loop.llm.provider import ModelRequest, ToolSchema
from agent_loop.llm.providers.demo import PROGRAM, TOOLS, Demo
from agent_loop.messages import Message, Text, ToolCallBlock, ToolResultBlock, text_of

ALL_TOOLS = tuple(ToolSchema(name, "", {}) for name in TOOLS)
ASK = Message("user", (Text("Please write me an operating system."),))

WORLD = {
    "list": "docs/\nlogo.png  10\nmain.py  20\nREADME.md  30",
    "read": "# A project\n\nand more",
    "write": "wrote hello.py",
    "run_command": "Hello from the demonstration.\n",
}


async def step(messages: list[Message], tools: tuple[ToolSchema, ...] = ALL_TOOLS) -> Collector:
    collector = Collector()

    with anyio.fail_after(5):
        async for chunk in Demo().stream(ModelRequest("demo", "tour", messages, tools=tools)):
            collector.add(chunk)

    return collector


async def tour(
    messages: list[Message], answers: dict[str, str], refused: frozenset[str] = frozenset()
) -> tuple[list[tuple[str, object]], str]:
    """Play the loop: run every call until the tour ends; returns the calls and the last text."""
    calls: list[tuple[str, object]] = []

    for _ in range(10):
        answer = await step(messages)
        content = answer.content()
        messages.append(Message("assistant", content))
        asked = [block for block in content if isinstance(block, ToolCallBlock)]

        if not asked:
            assert answer.finish == Finish("stop")
            return calls, text_of(content)

        assert answer.finish == Finish("tool-calls")
        for call in asked:
            calls.append((call.name, json.loads(call.arguments)))
            text = "the person said no" if call.name in refused else answers[call.name]
            result = ToolResultBlock(call.id, (Text(text),), is_error=call.name in refused)
            messages.append(Message("user", (result,)))

    raise AssertionError("the tour does not end")


async def test_the_tour_lists_reads_writes_runs_and_tells() -> None:
    """Our promise: `acp-server demo` works offline, with real tools."""
    calls, summary = await tour([ASK], WORLD)

    assert calls == [
        ("list", {}),
        ("read", {"path": "README.md"}),
        ("write", {"path": "hello.py", "content": PROGRAM}),
        ("run_command", {"command": "python3 hello.py"}),
    ]
    assert summary == (
        "The tour is over. This is what happened:\n\n"
        "- `list {}`: docs/\n"
        '- `read {"path":"README.md"}`: # A project\n'
        "- `write hello.py`: wrote hello.py\n"
        '- `run_command {"command":"python3 hello.py"}`: Hello from the demonstration.\n'
        "\nAnd all of it without a model.\n"
    )


async def test_it_says_at_once_that_it_is_no_model() -> None:
    """Our promise: nobody takes the demonstration for a language model."""
    content = (await step([ASK])).content()

    assert "not a language model" in text_of(content)


async def test_it_thinks_first_and_streams_in_small_pieces() -> None:
    """Our promise: an editor's live display has something to show."""
    chunks = [chunk async for chunk in Demo().stream(ModelRequest("demo", "x", [ASK], tools=ALL_TOOLS))]

    kinds = [type(chunk) for chunk in chunks]
    assert kinds.index(ReasoningDelta) < kinds.index(TextDelta)
    assert kinds.count(TextDelta) > 10


@pytest.mark.parametrize(
    ("listed", "read"),
    [
        ("a.png\nb.py\nc.md", ["b.py"]),
        ("src/\na.png\nmd/", []),
        ("", []),
        ("two words.md  7", ["two words.md"]),
    ],
)
async def test_it_reads_the_first_text_file_or_none(listed: str, read: list[str]) -> None:
    """Our promise: any folder will do."""
    calls, _ = await tour([ASK], {**WORLD, "list": listed})

    assert [arguments for name, arguments in calls if name == "read"] == [{"path": path} for path in read]


@pytest.mark.parametrize("tool", TOOLS)
async def test_a_refused_step_is_told_and_the_tour_goes_on(tool: str) -> None:
    """Our promise: the demonstration shows consent, so "no" must work."""
    calls, summary = await tour([ASK], WORLD, frozenset({tool}))

    assert [name for name, _ in calls] == [name for name in TOOLS if (tool, name) != ("list", "read")]
    assert summary.count("did not work (the person said no)") == 1


async def test_a_second_prompt_gets_the_same_tour_with_new_ids() -> None:
    """Contract 1: a tool-call id is used once in a session."""
    messages = [ASK]
    first, _ = await tour(messages, WORLD)
    messages.append(ASK)

    second, _ = await tour(messages, WORLD)

    ids = [b.id for message in messages for b in message.content if isinstance(b, ToolCallBlock)]
    assert (second, len(set(ids))) == (first, 8)


@pytest.mark.parametrize("tag", ["steering", "context"])
async def test_what_is_put_into_a_running_turn_does_not_begin_a_new_tour(tag: str) -> None:
    """History tags such messages; a plugin that adds one each step must not make the tour endless."""
    messages = [ASK]
    messages.append(Message("assistant", (await step(messages)).content()))
    messages.append(Message("user", (ToolResultBlock("demo-1", (Text("README.md"),)),)))
    messages.append(Message("user", (Text(f'<{tag} source="user">\n'), Text("hurry"), Text(f"\n</{tag}>"))))

    content = (await step(messages)).content()

    assert [block.name for block in content if isinstance(block, ToolCallBlock)] == ["read"]


async def test_results_that_are_missing_empty_or_long_are_told_as_they_are() -> None:
    """Our promise: the summary is honest."""
    calls = tuple(ToolCallBlock(f"c{at}", name, "{}") for at, name in enumerate(TOOLS))
    results = (ToolResultBlock("c1", ()), ToolResultBlock("c2", (Text("\n" + "x" * 200),)))
    messages = [ASK, Message("assistant", calls), Message("user", results)]

    text = text_of((await step(messages)).content())

    assert "`list {}`: no result came back" in text
    assert "`read {}`: no output" in text
    assert f"`write hello.py`: {'x' * 119}…" in text


async def test_without_its_tools_it_says_which_are_missing_and_stops() -> None:
    """Our promise: it never asks for a tool that was not offered."""
    answer = await step([ASK], ALL_TOOLS[:2])

    assert "the tools write, run_command are not there" in text_of(answer.content())
    assert answer.finish == Finish("stop")


async def test_there_is_nothing_to_load_or_to_close() -> None:
    """Provider seam: both are there all the same."""
    demo = Demo("tour")
    await demo.load()
    await demo.aclose()

    assert demo.name == "tour"
