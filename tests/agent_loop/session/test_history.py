"""What the model sees of a log."""

import pytest

from agent_loop.chunks import TextDelta
from agent_loop.events import facts as f
from agent_loop.messages import USER, Message, Reasoning, Text, ToolCallBlock, ToolResultBlock
from agent_loop.session.history import History
from tests.doubles.facts import one_turn, placed_facts

CALL = ToolCallBlock("c1", "t", "{}")
MESSAGE = f.Trigger("message", USER)
PLUGIN = {"kind": 'a "plugin"', "plugin": "p"}


def derived(*facts: f.LoggedFact) -> tuple[Message, ...]:
    history = History()
    history.fold(placed_facts(facts))
    return history.messages()


def test_a_prompt_and_its_answer_are_a_user_and_an_assistant_message() -> None:
    """Loop specification 3.3: chunks, steps and turns derive nothing."""
    assert derived(*one_turn()) == (
        Message("user", (Text("hi"),)),
        Message("assistant", (Text("hello"),)),
    )


def test_each_tool_result_is_a_user_message_of_its_own() -> None:
    """Loop specification 3.3: no merging; the call's own facts derive nothing."""
    assert derived(
        f.AssistantMessage(1, 1, 1, (Reasoning("hm"), CALL)),
        f.ToolCall(1, 1, "c1", "t", "{}", None),
        f.ToolStarted(1, 1, "c1"),
        f.ToolResult(1, 1, "c1", (Text("done"),), True, "ran"),
    ) == (
        Message("assistant", (Reasoning("hm"), CALL)),
        Message("user", (ToolResultBlock("c1", (Text("done"),), True),)),
    )


@pytest.mark.parametrize(
    ("fact", "tag"),
    [
        (f.ContextMessage(1, (Text("look"),), PLUGIN), "context"),
        (f.SteeringMessage(1, "m", (Text("look"),), PLUGIN), "steering"),
    ],
)
def test_context_and_steering_stand_in_tags_that_name_their_source(fact: f.LoggedFact, tag: str) -> None:
    """Loop specification 3.3: the kind is quoted as JSON."""
    assert derived(fact) == (
        Message("user", (Text(f'<{tag} source="a \\"plugin\\"">\n'), Text("look"), Text(f"\n</{tag}>"))),
    )


def test_a_source_without_a_kind_is_unknown() -> None:
    """Our promise: sources are open payloads."""
    (message,) = derived(f.ContextMessage(1, (), {}))

    assert message.content[0] == Text('<context source="unknown">\n')


def test_an_empty_answer_derives_nothing() -> None:
    """Loop specification 6.27: it is logged all the same."""
    assert derived(f.AssistantMessage(1, 1, 1, ())) == ()


def test_an_interrupted_answer_is_kept() -> None:
    """Loop specification 9.41: the person refers to what they have read."""
    assert derived(f.AssistantMessage(1, 1, 1, (Text("hal"),), interrupted=True)) == (
        Message("assistant", (Text("hal"),)),
    )


def test_a_failed_attempt_derives_nothing() -> None:
    """Loop specification 6.46: its chunks stay logged."""
    assert derived(
        f.AssistantChunk(1, 1, 1, TextDelta(0, "half")),
        f.ErrorRecorded(1, "too much to do", "PROVIDER", "overloaded"),
    ) == ()  # fmt: skip


def test_a_refused_turn_is_dropped_as_a_whole_and_nothing_else_is() -> None:
    """ACP, prompt turn, stop reason refusal: the prompt and what follows it are not in the next one."""
    refused: list[f.LoggedFact] = [
        f.TurnStart(2, MESSAGE, ("m",)),
        f.UserMessage(2, "m", (Text("bad"),), USER),
        f.AssistantMessage(2, 1, 1, (Text("no"),)),
        f.TurnEnd(2, f.EndReason("refusal")),
    ]

    assert derived(*one_turn(1), *refused, *one_turn(3, text="good")) == (
        Message("user", (Text("hi"),)),
        Message("assistant", (Text("hello"),)),
        Message("user", (Text("hi"),)),
        Message("assistant", (Text("good"),)),
    )


def test_folding_in_pieces_gives_the_same_history() -> None:
    """Loop specification 3.3: replaying the same facts gives the same derivation."""
    facts = [*one_turn(1), *one_turn(2, 7)]

    for cut in range(len(facts)):
        history = History()
        history.fold(facts[:cut])
        history.fold(facts[cut:])
        assert history.messages() == derived(*facts)
