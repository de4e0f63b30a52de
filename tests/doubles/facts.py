"""Facts of every kind: strategies that draw them, and a short turn to start from.

What they draw is what the house can log: lossless JSON, and only the fields that belong to a fact's
kind. A fact is placed by whoever logs it; `placed_facts` does it for stores and codecs.
"""

from collections.abc import Sequence
from typing import Any, get_args

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from agent_loop import cards, chunks, errors, messages
from agent_loop.events import facts as f
from agent_loop.events.facts_json import placed
from agent_loop.jsonvalue import freeze_json

TIME_MS = 1_700_000_000_000

# Machines differ and are shared: a property is false by its values, never by its speed.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

texts = st.text(max_size=20)
counts = st.integers(0, 2**31)
numbers = st.integers(1, 50)
error_kinds = st.sampled_from(get_args(errors.ErrorKind))

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
frozen_values = json_values.map(freeze_json)
json_objects = st.dictionaries(texts, json_values, max_size=3).map(freeze_json)
sources = st.builds(lambda kind, more: freeze_json({**more, "kind": kind}), texts, json_objects)

leaf_blocks = st.one_of(
    st.builds(messages.Text, texts),
    st.builds(messages.Reasoning, texts, frozen_values),
    st.builds(messages.ToolCallBlock, texts, texts, texts),
    st.builds(messages.Image, texts, texts),
)
blocks = leaf_blocks | st.builds(
    messages.ToolResultBlock, texts, st.lists(leaf_blocks, max_size=2).map(tuple), st.booleans()
)
contents = st.lists(blocks, max_size=3).map(tuple)

card_items = st.one_of(
    st.builds(cards.CardText, texts),
    st.builds(cards.CardCode, texts, texts),
    st.builds(cards.CardDiff, texts, st.none() | texts, texts),
    st.builds(cards.CardOutput, texts, st.booleans()),
)
drawn_cards = st.builds(
    cards.Card,
    kind=st.sampled_from(get_args(cards.CardKind)),
    title=texts,
    body=st.lists(card_items, max_size=2).map(tuple),
    locations=st.lists(st.builds(cards.Location, texts, st.none() | numbers), max_size=2).map(tuple),
    input=frozen_values,
    status=st.sampled_from(get_args(cards.CardStatus)),
)

plan_entries = st.builds(
    f.PlanEntry, texts, st.sampled_from(get_args(f.PlanPriority)), st.sampled_from(get_args(f.PlanStatus))
)
amounts = st.floats(0, 1e6)
costs = st.builds(f.Cost, amounts, amounts, texts)
usages = st.builds(chunks.Usage, counts, counts, counts, counts, counts)
drawn_chunks: st.SearchStrategy[chunks.Chunk] = st.one_of(
    st.builds(chunks.TextDelta, counts, texts),
    st.builds(chunks.ReasoningDelta, counts, texts),
    st.builds(chunks.ToolCallDelta, counts, texts, texts, texts),
    st.builds(chunks.BlockStart, counts, st.sampled_from(get_args(chunks.BlockKind))),
    st.builds(chunks.BlockEnd, counts, st.none() | leaf_blocks, frozen_values),
    st.builds(chunks.UsageChunk, usages),
    st.builds(chunks.Finish, st.sampled_from([k for k in get_args(chunks.FinishKind) if k != "error"])),
    st.builds(chunks.Finish, st.just("error"), texts, error_kinds),
)

end_reasons = st.one_of(
    st.builds(
        f.EndReason, st.sampled_from([k for k in get_args(f.EndKind) if k not in ("aborted", "error")])
    ),
    st.builds(f.EndReason, st.just("aborted"), st.sampled_from(get_args(f.CancelCause)), texts),
    st.builds(
        f.EndReason,
        st.just("error"),
        error_kind=error_kinds,
        message=texts,
        data=st.none() | json_objects,
    ),
)
exits = st.builds(f.Exit, st.none() | st.integers(0, 255), st.none() | texts, st.booleans())

STRATEGIES: dict[type[f.LoggedFact], st.SearchStrategy[Any]] = {
    f.TurnStart: st.builds(
        f.TurnStart,
        numbers,
        st.builds(f.Trigger, st.sampled_from(["message", "injection"]), sources),
        st.lists(texts, max_size=3).map(tuple),
    ),
    f.TurnEnd: st.builds(f.TurnEnd, numbers, end_reasons),
    f.StepStart: st.builds(f.StepStart, numbers, numbers),
    f.StepEnd: st.builds(f.StepEnd, numbers, numbers),
    f.UserMessage: st.builds(f.UserMessage, numbers, texts, contents, sources),
    f.ContextMessage: st.builds(f.ContextMessage, numbers, contents, sources),
    f.SteeringMessage: st.builds(f.SteeringMessage, numbers, texts, contents, sources),
    f.AssistantChunk: st.builds(f.AssistantChunk, numbers, numbers, numbers, drawn_chunks),
    f.AssistantMessage: st.builds(f.AssistantMessage, numbers, numbers, numbers, contents, st.booleans()),
    f.ToolCall: st.builds(f.ToolCall, numbers, numbers, texts, texts, texts, st.none() | drawn_cards),
    f.ToolStarted: st.builds(f.ToolStarted, numbers, numbers, texts),
    f.ToolResult: st.builds(
        f.ToolResult,
        numbers,
        numbers,
        texts,
        contents,
        st.booleans(),
        st.sampled_from(get_args(f.Outcome)),
        st.none() | texts,
        st.none() | exits,
        st.none() | drawn_cards,
    ),
    f.PermissionAsked: st.builds(
        f.PermissionAsked, numbers, numbers, texts, st.lists(texts, max_size=3).map(tuple), st.none() | texts
    ),
    f.PermissionDecided: st.builds(
        f.PermissionDecided,
        numbers,
        numbers,
        texts,
        st.booleans(),
        st.sampled_from(get_args(f.DecidedBy)),
        st.none() | texts,
        st.none() | texts,
    ),
    f.PlanChanged: st.builds(f.PlanChanged, numbers, numbers, st.lists(plan_entries, max_size=3).map(tuple)),
    f.UsageRecorded: st.builds(
        f.UsageRecorded, numbers, numbers, usages, st.none() | numbers, st.none() | costs
    ),
    f.ErrorRecorded: st.builds(f.ErrorRecorded, numbers, texts, texts, st.none() | error_kinds),
    f.RequestRetried: st.builds(
        f.RequestRetried, numbers, numbers, numbers, error_kinds, texts, numbers, st.booleans()
    ),
    f.SessionTitle: st.builds(f.SessionTitle, texts, st.sampled_from(get_args(f.TitledBy))),
    f.SessionModel: st.builds(f.SessionModel, texts, st.none() | st.sampled_from(get_args(f.ThoughtLevel))),
    f.SessionMode: st.builds(f.SessionMode, st.sampled_from(get_args(f.PermissionMode))),
    f.PluginFact: st.builds(f.PluginFact, texts, texts, frozen_values),
}
"""One strategy for each class of the closed union."""


def _run(turn: int, step: int, attempt: int, index: int, delta: Any, pieces: list[tuple[str, int]]) -> Any:
    run = f.AssistantRun(turn, step, attempt, index, delta, 0, TIME_MS)
    run.texts = [text for text, _ in pieces]
    run.dt_ms = [0, *(dt_ms for _, dt_ms in pieces[1:])]
    run.last_time = TIME_MS + sum(run.dt_ms)
    return run


runs: st.SearchStrategy[f.AssistantRun] = st.builds(
    _run,
    numbers,
    numbers,
    numbers,
    counts,
    st.sampled_from([chunks.TextDelta, chunks.ReasoningDelta]),
    st.lists(st.tuples(texts, st.integers(0, 10_000)), min_size=1, max_size=5),
)
"""Runs of deltas, at place 0."""

any_fact: st.SearchStrategy[f.LoggedFact] = st.one_of(*STRATEGIES.values())


def placed_facts(facts: Sequence[f.LoggedFact], first_seq: int = 0) -> list[f.LoggedFact]:
    """The facts with places from `first_seq` on, a millisecond apart."""
    return [placed(fact, seq, TIME_MS + seq) for seq, fact in enumerate(facts, first_seq)]


def one_turn(turn: int = 1, first_seq: int = 0, text: str = "hello") -> list[f.LoggedFact]:
    """A whole small turn, placed: a prompt, one answer, the end."""
    return placed_facts(
        [
            f.TurnStart(turn, f.Trigger("message", messages.USER), (f"m{turn}",)),
            f.UserMessage(turn, f"m{turn}", (messages.Text("hi"),), messages.USER),
            f.StepStart(turn, 1),
            f.AssistantChunk(turn, 1, 1, chunks.TextDelta(0, text)),
            f.AssistantMessage(turn, 1, 1, (messages.Text(text),)),
            f.StepEnd(turn, 1),
            f.TurnEnd(turn, f.EndReason("completed")),
        ],
        first_seq,
    )
