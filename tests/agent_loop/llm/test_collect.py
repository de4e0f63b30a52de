"""Folding chunks into content, when providers are tidy and when they are not."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from agent_loop.llm.collect import Collector
from agent_loop.messages import Content, Image, Reasoning, Text, ToolCallBlock

OPEN_CALL = [ToolCallDelta(0, "c1", "read", '{"path"')]


def collected(chunks: Sequence[Chunk], taken_ids: frozenset[str] = frozenset()) -> Collector:
    collector = Collector(taken_ids)

    for chunk in chunks:
        collector.add(chunk)

    return collector


@pytest.mark.parametrize(
    ("chunks", "content"),
    [
        ([TextDelta(0, "a"), TextDelta(0, "b")], (Text("ab"),)),
        ([ReasoningDelta(0, "hm"), TextDelta(1, "a")], (Reasoning("hm"), Text("a"))),
        ([BlockStart(0, "text"), TextDelta(0, "a"), BlockStart(0, "reasoning")], (Text("a"),)),
        (
            [BlockStart(1, "text"), TextDelta(0, "first"), TextDelta(1, "second")],
            (Text("second"), Text("first")),
        ),
        ([TextDelta(0, "a"), BlockEnd(0), TextDelta(0, "late")], (Text("a"),)),
        ([TextDelta(0, "a"), ReasoningDelta(0, "other kind")], (Text("a"),)),
        ([TextDelta(0, "a"), ToolCallDelta(0, "c", "n", "{}")], (Text("a"),)),
        ([TextDelta(0, "a"), BlockEnd(0, Text("A")), BlockEnd(0, Text("B"))], (Text("A"),)),
        ([TextDelta(0, "a"), BlockEnd(0), BlockEnd(0, Text("A"))], (Text("A"),)),
        ([BlockEnd(0, Text("alone"))], (Text("alone"),)),
        ([BlockEnd(0)], ()),
        ([BlockStart(0, "text"), BlockStart(1, "reasoning"), TextDelta(2, "")], ()),
        ([BlockEnd(0, Reasoning("", {"signature": "x"}))], (Reasoning("", {"signature": "x"}),)),
        ([ReasoningDelta(0, "hm"), BlockEnd(0, opaque="sig")], (Reasoning("hm", "sig"),)),
        (
            [ReasoningDelta(0, "hm"), BlockEnd(0, opaque="1"), BlockEnd(0, opaque="2")],
            (Reasoning("hm", "1"),),
        ),
        ([BlockEnd(0, Image("AA==", "image/png"))], (Image("AA==", "image/png"),)),
        ([TextDelta(0, " ")], (Text(" "),)),
    ],
)
def test_blocks_are_what_the_assembler_rules_say(chunks: list[Chunk], content: tuple[Content, ...]) -> None:
    """Loop specification 1.6: starts, deltas and ends in any state of disorder."""
    assert collected(chunks).content() == content


@pytest.mark.parametrize(
    ("chunks", "call"),
    [
        ([*OPEN_CALL, ToolCallDelta(0, "", "", ":1}")], ToolCallBlock("c1", "read", '{"path":1}')),
        ([*OPEN_CALL, ToolCallDelta(0, "c2", "other", "")], ToolCallBlock("c1", "read", '{"path"')),
        ([*OPEN_CALL, BlockEnd(0), ToolCallDelta(0, "", "", "late")], ToolCallBlock("c1", "read", '{"path"')),
        ([ToolCallDelta(4, "", "", "{}")], ToolCallBlock("call-4", "", "{}")),
        ([BlockStart(2, "tool-call")], ToolCallBlock("call-2", "", "")),
        ([ToolCallDelta(0, "", "", ""), ToolCallDelta(0, "c1", "", "{"), ToolCallDelta(0, "", "read", "}")],
         ToolCallBlock("c1", "read", "{}")),
        ([BlockEnd(0, ToolCallBlock("c1", "read", "{}"))], ToolCallBlock("c1", "read", "{}")),
    ],
)  # fmt: skip
def test_a_call_gets_its_first_id_its_first_name_and_all_its_arguments(
    chunks: list[Chunk], call: ToolCallBlock
) -> None:
    """Loop specification 1.6: an id that never comes is made from the index, a name stays empty."""
    assert collected(chunks).content() == (call,)


@pytest.mark.parametrize(
    ("taken", "ids", "unique"),
    [
        ((), ["a", "b"], ["a", "b"]),
        ((), ["a", "a", "a"], ["a", "a-2", "a-3"]),
        (("a",), ["a"], ["a-2"]),
        (("a", "a-2"), ["a", "a"], ["a-3", "a-4"]),
        (("call-0",), ["", ""], ["call-0-2", "call-1"]),
        ((), ["a", "a", "a-2"], ["a", "a-2", "a-2-2"]),
    ],
)
def test_a_tool_call_id_is_used_once_in_a_session(
    taken: tuple[str, ...], ids: list[str], unique: list[str]
) -> None:
    """Contract 1: the first use keeps the provider's text, a repeat gets a suffix."""
    answer = collected([ToolCallDelta(at, id, "t", "{}") for at, id in enumerate(ids)], frozenset(taken))

    assert [block.id for block in answer.content() if isinstance(block, ToolCallBlock)] == unique
    assert answer.content() == answer.content()


def test_the_last_usage_and_the_last_finish_count() -> None:
    """Loop specification 1.6."""
    answer = collected(
        [UsageChunk(Usage(1, 1)), Finish("stop"), UsageChunk(Usage(2, 2)), Finish("max-tokens", "long")]
    )

    assert (answer.usage, answer.finish) == (Usage(2, 2), Finish("max-tokens", "long"))


def test_a_stream_that_broke_off_has_no_finish() -> None:
    """Contract 8: no finish reason is a cut, for the loop to notice."""
    answer = collected([TextDelta(0, "half")])

    assert (answer.usage, answer.finish, answer.content()) == (None, None, (Text("half"),))


@pytest.mark.parametrize(
    ("chunks", "shown"),
    [
        ([], False),
        ([TextDelta(0, "")], False),
        ([ToolCallDelta(0, "c", "t", "{}"), UsageChunk(Usage())], False),
        ([TextDelta(0, "a")], True),
        ([ReasoningDelta(0, "a")], True),
    ],
)
def test_shown_tells_whether_a_person_may_have_read_something(chunks: list[Chunk], shown: bool) -> None:
    """Contract 7: a retry must know whether it repeats itself."""
    assert collected(chunks).shown is shown


def test_a_cancelled_answer_keeps_what_was_said_and_drops_what_was_to_be_done() -> None:
    """Loop specification: calls of a cancelled stream never ran, so history must not hold them."""
    answer = collected(
        [
            ReasoningDelta(0, "hm"),
            TextDelta(1, "I read"),
            TextDelta(2, " \n"),
            ToolCallDelta(3, "c1", "read", "{}"),
            BlockEnd(4, Image("AA==", "image/png")),
        ]
    )

    assert answer.visible_prefix() == (Reasoning("hm"), Text("I read"))
    assert answer.without_tool_calls() == (
        Reasoning("hm"),
        Text("I read"),
        Text(" \n"),
        Image("AA==", "image/png"),
    )


CHUNKS = st.lists(
    st.one_of(
        st.builds(TextDelta, st.integers(0, 3), st.text(max_size=3)),
        st.builds(ReasoningDelta, st.integers(0, 3), st.text(max_size=3)),
        st.builds(ToolCallDelta, st.integers(0, 3), st.sampled_from(["", "a", "b"]), st.just("t"), st.text()),
        st.builds(BlockStart, st.integers(0, 3), st.sampled_from(["text", "reasoning", "tool-call"])),
        st.builds(BlockEnd, st.integers(0, 3), st.none() | st.builds(Text, st.text(max_size=3))),
        st.builds(Finish, st.just("stop")),
    ),
    max_size=30,
)


@given(CHUNKS, st.frozensets(st.sampled_from(["a", "a-2", "b", "call-0", "call-1-2"])))
def test_any_order_of_chunks_gives_blocks_that_say_something_under_unique_ids(
    chunks: list[Chunk], taken: frozenset[str]
) -> None:
    """Our promise: no stream, however wrong, makes a history that the next request would be refused for."""
    answer = collected(chunks, taken)
    content = answer.content()

    ids = [block.id for block in content if isinstance(block, ToolCallBlock)]
    assert len(set(ids)) == len(ids)
    assert not taken & set(ids)
    assert all(block.text for block in content if isinstance(block, Text | Reasoning))
    assert all(block in content for block in answer.visible_prefix())


@given(CHUNKS)
def test_a_delta_may_come_in_any_number_of_pieces(chunks: list[Chunk]) -> None:
    """Our promise: how a provider cuts its text changes nothing that is stored."""
    pieces: list[Chunk] = []

    for chunk in chunks:
        if isinstance(chunk, TextDelta):
            pieces += [TextDelta(chunk.index, char) for char in chunk.text] or [chunk]
        else:
            pieces.append(chunk)

    assert collected(pieces).content() == collected(chunks).content()
