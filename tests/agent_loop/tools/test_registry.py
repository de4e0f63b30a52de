"""The registry: who sees which tool, and that nothing a tool or a model does raises out of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_loop.cards import Card, CardText
from agent_loop.errors import ConfigError, Duplicate
from agent_loop.events.bus import Bus, Next
from agent_loop.messages import Text
from agent_loop.tools.registry import BoundCall, Refusal, ToolRegistry, ToolSpec
from agent_loop.tools.tool import (
    EXECUTE,
    Effect,
    Prepared,
    PreparedCall,
    ToolContext,
    ToolOutcome,
    ToolRefused,
)
from agent_loop.workspace.roots import OutsideRoots
from tests.doubles.workshop import Workshop, said

CARD = Card(kind="think", title="Think")


class Arguments(BaseModel):
    thought: str = ""


class Thinker:
    """A tool that does what its test says."""

    description = "Thinks."
    arguments = Arguments

    def __init__(self, name: str = "think") -> None:
        self.name = name
        self.on_prepare: Callable[[], object] = lambda: None
        self.on_run: Callable[[], object] = lambda: None
        self.card = CARD

    def parallel_safe(self, args: Arguments) -> bool:
        if args.thought == "bug":
            raise RuntimeError("cannot say")
        return args.thought == "safe"

    async def prepare(self, args: Arguments, ctx: ToolContext) -> Prepared:
        self.on_prepare()
        return Prepared(self.card, Effect("none"), args.thought)

    async def run(self, prepared: Prepared, ctx: ToolContext) -> ToolOutcome:
        answer = self.on_run()
        if isinstance(answer, ToolOutcome):
            return answer
        return ToolOutcome(content=(Text(f"{self.name}: {prepared.state}"),))


class House:
    """A registry with one tool in it."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.registry = ToolRegistry(self.bus)
        self.tool = Thinker()
        self.registry.register(self.tool)

    async def call(self, workshop: Workshop, raw: str = '{"thought": "t"}') -> BoundCall:
        call = await self.registry.prepare("think", raw, workshop.context())
        assert isinstance(call, BoundCall)
        return call

    async def execute(self, workshop: Workshop) -> ToolOutcome:
        return await self.registry.execute(await self.call(workshop), self.registry.run_body)


@pytest.fixture
def house() -> House:
    return House()


def raising(error: BaseException) -> Callable[[], object]:
    def do() -> object:
        raise error

    return do


def strayed() -> object:
    """What a tool gets that asks a future somebody else cancelled."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()
    return future.result()


def test_tools_are_told_in_the_order_they_came(house: House) -> None:
    """Our promise: a stable prompt prefix is a cached one."""
    dispose = house.registry.register(Thinker("a"), session_id="s1")
    house.registry.register(Thinker("z"))

    names = [spec.name for spec in house.registry.schemas("s1")]

    assert names == ["think", "z", "a"]
    assert [spec.name for spec in house.registry.schemas("s2")] == ["think", "z"]
    dispose()
    dispose()
    assert [spec.name for spec in house.registry.schemas("s1")] == ["think", "z"]


def test_the_bundled_tools_are_made_once_when_somebody_asks_and_stand_before_all_others() -> None:
    """Our promise: a start waits for no argument model, and the prompt's prefix is the same all the same."""
    made = []

    def bundled() -> list[Thinker]:
        made.append("bundled")
        return [Thinker("a"), Thinker("b")]

    registry = ToolRegistry(Bus(), bundled)
    assert made == []

    registry.register(Thinker("z"))

    assert [spec.name for spec in registry.schemas("s1")] == ["a", "b", "z"]
    registry.load()
    assert made == ["bundled"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda registry: registry.load(),
        lambda registry: registry.get("a", "s1"),
        lambda registry: registry.schemas("s1"),
        lambda registry: registry.parallel_safe("a", "{}", "s1"),
    ],
    ids=["load", "get", "schemas", "parallel_safe"],
)
def test_whoever_asks_first_finds_the_bundled_tools(ask: Callable[[ToolRegistry], object]) -> None:
    """Our promise: no way in sees a registry that is not filled yet."""
    made = []

    def bundled() -> list[Thinker]:
        made.append("bundled")
        return [Thinker("a")]

    ask(ToolRegistry(Bus(), bundled))

    assert made == ["bundled"]


def test_a_sessions_own_tool_hides_one_for_all_and_gives_it_back(house: House) -> None:
    """Contracts 2: a registration has scope harness or one session; the session is resolved first."""
    house.registry.register(Thinker("later"))
    own = Thinker()
    dispose = house.registry.register(own, session_id="s1")

    assert house.registry.get("think", "s1") is own
    assert house.registry.get("think", "s2") is house.tool
    assert [spec.name for spec in house.registry.schemas("s1")] == ["think", "later"]

    dispose()

    assert house.registry.get("think", "s1") is house.tool
    assert house.registry.get("none", "s1") is None


def test_a_taken_name_stays_with_the_first_until_it_lets_go(house: House) -> None:
    """Spec loop 1.7: a duplicate name raises."""
    dispose = house.registry.register(Thinker("x"))

    with pytest.raises(Duplicate, match="named x already"):
        house.registry.register(Thinker("x"))

    dispose()
    second = Thinker("x")
    house.registry.register(second)
    dispose()
    assert house.registry.get("x", "s") is second


@pytest.mark.parametrize("name", ["", "two words", "a" * 65, "ü"])
def test_a_name_no_provider_takes_is_refused(house: House, name: str) -> None:
    """Providers allow letters, digits, _ and -, at most 64."""
    with pytest.raises(ValueError, match="a tool's name"):
        house.registry.register(Thinker(name))


def test_schemas_are_copies(house: House) -> None:
    """Spec loop 1.7: deep-copied, never leaks functions."""
    (first,) = house.registry.schemas("s")

    first.parameters["properties"].clear()

    assert house.registry.schemas("s") == (
        ToolSpec(
            "think",
            "Thinks.",
            {"type": "object", "properties": {"thought": {"type": "string", "default": ""}}},
        ),
    )


async def test_a_good_call_is_prepared_and_run_by_the_same_tool(house: House, workshop: Workshop) -> None:
    """Contracts 2: what was approved is what runs, whoever registers what meanwhile."""
    call = await house.call(workshop)
    house.registry.register(Thinker(), session_id="s1")
    house.tool.name = "the first"

    outcome = await house.registry.execute(call, house.registry.run_body)

    assert (call.name, call.arguments, call.prepared.card) == ("think", {"thought": "t"}, CARD)
    assert outcome == ToolOutcome(content=(Text("the first: t"),))


@pytest.mark.parametrize(
    ("name", "raw", "code", "words", "shown"),
    [
        ("none", "{}", "UNKNOWN_TOOL", "Error: there is no tool 'none'. The tools are: think.", {}),
        (
            "none",
            '{"a": 1}',
            "UNKNOWN_TOOL",
            "Error: there is no tool 'none'. The tools are: think.",
            {"a": 1},
        ),
        (
            "think",
            "{bad",
            "INVALID_ARGS",
            "Error: the arguments cannot be used:\n- they are not JSON",
            "{bad",
        ),
        ("think", "", "INVALID_ARGS", None, None),
        (
            "think",
            '{"thought": 5}',
            "INVALID_ARGS",
            "Error: the arguments cannot be used:\n- thought must be text",
            {"thought": 5},
        ),
        ("", "[]", "UNKNOWN_TOOL", "Error: there is no tool ''.", "[]"),
    ],
)
async def test_a_call_that_makes_no_sense_is_refused_in_words(
    house: House, workshop: Workshop, name: str, raw: str, code: str, words: str | None, shown: Any
) -> None:
    """Spec loop 1.7: unknown tool and bad arguments become results with a code."""
    answer = await house.registry.prepare(name, raw, workshop.context())

    if words is None:
        assert isinstance(answer, BoundCall)
        return

    assert isinstance(answer, Refusal)
    assert said(answer).startswith(words)
    assert answer.card == Card(kind="other", title=name or "tool", input=shown)
    assert (answer.outcome.is_error, answer.outcome.error_code, answer.outcome.outcome) == (
        True,
        code,
        "skipped",
    )


async def test_without_any_tool_the_model_is_told_so(workshop: Workshop) -> None:
    """Spec loop 1.7."""
    answer = await ToolRegistry(Bus()).prepare("x\ud800" * 200, "{}", workshop.context())

    assert isinstance(answer, Refusal)
    assert said(answer).endswith("The tools are: none.")
    assert len(answer.card.title) == 100


@pytest.mark.parametrize(
    ("error", "code", "words", "logged"),
    [
        (ToolRefused("mend it", code="MINE"), "MINE", "Error: mend it", False),
        (
            OutsideRoots("a leads out"),
            "OUTSIDE_ROOTS",
            "Error: a leads out. Use a path inside one of them.",
            False,
        ),
        (
            FileNotFoundError(2, "No such file or directory", "/a"),
            "NOT_FOUND",
            "Error: /a: No such file or directory",
            False,
        ),
        (OSError(28, "No space left on device"), "IO", "Error: No space left on device", False),
        (OSError("in words"), "IO", "Error: in words", False),
        (ConfigError("unset"), "CONFIG", "Error: think failed: unset", True),
        (KeyError(), "UNKNOWN", "Error: think failed: KeyError", True),
    ],
)
async def test_whatever_a_tool_raises_becomes_words_and_a_code(
    house: House,
    workshop: Workshop,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    code: str,
    words: str,
    logged: bool,
) -> None:
    """Spec loop 1.7: `execute` never raises; our promise: a bug is in the log, too."""
    call = await house.call(workshop)
    house.tool.on_prepare = house.tool.on_run = raising(error)

    with caplog.at_level(logging.ERROR):
        refusal = await house.registry.prepare("think", "{}", workshop.context())
        outcome = await house.registry.execute(call, house.registry.run_body)

    assert isinstance(refusal, Refusal)
    assert said(refusal) == said(outcome) == words
    assert refusal.outcome == replace(outcome, outcome="skipped")
    assert (outcome.is_error, outcome.error_code, outcome.outcome) == (True, code, "ran")
    assert [record.exc_info is not None for record in caplog.records] == [True, True][: 2 * logged]


async def test_a_refusal_may_bring_its_own_card(house: House, workshop: Workshop) -> None:
    """The tool seam."""
    house.tool.on_prepare = raising(ToolRefused("no", card=CARD))

    answer = await house.registry.prepare("think", "{}", workshop.context())

    assert isinstance(answer, Refusal)
    assert answer.card == CARD


async def test_a_card_no_log_can_carry_is_the_tools_bug(house: House, workshop: Workshop) -> None:
    """Contracts 8: found out before it is logged, not when the row is written."""
    house.tool.card = replace(CARD, title="\ud800")
    refusal = await house.registry.prepare("think", "{}", workshop.context())
    house.tool.card = CARD
    house.tool.on_run = lambda: ToolOutcome((Text("done"),), card=replace(CARD, body=(CardText("\ud800"),)))

    outcome = await house.execute(workshop)

    assert isinstance(refusal, Refusal)
    assert refusal.outcome.error_code == "UNKNOWN"
    assert outcome == ToolOutcome((Text("done"),))


async def test_a_good_card_at_the_end_is_kept_and_the_content_bounded(
    house: House, workshop: Workshop
) -> None:
    """Contracts 2: the log holds at most 64,000 bytes of what a tool says."""
    card = replace(CARD, body=(CardText("end"),))
    house.tool.on_run = lambda: ToolOutcome((Text("x" * 100_000),), card=card)

    outcome = await house.execute(workshop)

    assert outcome.card == card
    assert len(said(outcome)) <= 64_000


async def test_a_middleware_stands_around_the_core_and_may_answer_itself(
    house: House, workshop: Workshop
) -> None:
    """Contracts 2: permission stands outermost and may keep a call from running."""
    seen = []

    async def around(call: PreparedCall, next: Next[PreparedCall, Awaitable[ToolOutcome]]) -> ToolOutcome:
        seen.append(call.name)
        if call.prepared.state == "denied":
            return ToolOutcome((Text("no"),), is_error=True, outcome="denied")
        return await next(replace(call, prepared=replace(call.prepared, state="other")))

    house.bus.around(EXECUTE, around)
    denied = await house.call(workshop, '{"thought": "denied"}')

    assert said(await house.execute(workshop)) == "think: other"
    assert (await house.registry.execute(denied, house.registry.run_body)).outcome == "denied"
    assert seen == ["think", "think"]


@pytest.mark.parametrize("synchronous", [True, False])
async def test_a_middleware_that_raises_is_contained(
    house: House, workshop: Workshop, synchronous: bool
) -> None:
    """Spec loop 1.7: a raising waterfall listener becomes an error result."""

    def now(call: PreparedCall, next: Next[PreparedCall, Awaitable[ToolOutcome]]) -> Awaitable[ToolOutcome]:
        raise LookupError("middleware")

    async def later(call: PreparedCall, next: Next[PreparedCall, Awaitable[ToolOutcome]]) -> ToolOutcome:
        raise LookupError("middleware")

    house.bus.around(EXECUTE, now if synchronous else later)

    outcome = await house.execute(workshop)

    assert said(outcome) == "Error: think failed: middleware"
    assert outcome.error_code == "UNKNOWN"


async def test_a_middleware_that_answers_nothing_or_forges_a_call_is_contained(
    house: House, workshop: Workshop
) -> None:
    """Spec loop 1.7: `execute` never raises."""

    async def forge(call: PreparedCall, next: Next[PreparedCall, Awaitable[ToolOutcome]]) -> ToolOutcome:
        return await next(PreparedCall(call.name, {}, call.prepared, call.ctx))

    async def nothing(call: PreparedCall, next: Next[PreparedCall, Awaitable[ToolOutcome]]) -> Any:
        return None

    dispose = house.bus.around(EXECUTE, forge)
    forged = await house.execute(workshop)
    dispose()
    house.bus.around(EXECUTE, nothing)
    empty = await house.execute(workshop)

    assert said(forged) == "Error: think failed: the call of think was not made by this registry"
    assert empty.is_error


async def test_a_cancellation_nobody_asked_for_is_an_error_like_any_other(
    house: House, workshop: Workshop
) -> None:
    """Contracts 6: a stray CancelledError silently ends a task group."""
    call = await house.call(workshop)
    house.tool.on_prepare = house.tool.on_run = strayed

    refusal = await house.registry.prepare("think", "{}", workshop.context())
    outcome = await house.registry.execute(call, house.registry.run_body)

    assert isinstance(refusal, Refusal)
    assert said(refusal) == said(outcome) == "Error: think failed: CancelledError"


async def test_a_real_cancellation_passes_through(house: House, workshop: Workshop) -> None:
    """Contracts 6: cancelling is never swallowed."""
    call = await house.call(workshop)

    async def hang(_: PreparedCall) -> ToolOutcome:
        scope.cancel()
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.fail_after(5), anyio.CancelScope() as scope:
        await house.registry.execute(call, hang)
        pytest.fail("execute swallowed a cancellation")

    house.tool.prepare = lambda *_: hang(call)  # type: ignore[method-assign, assignment]
    with anyio.fail_after(5), anyio.CancelScope() as scope:
        await house.registry.prepare("think", "{}", workshop.context())
        pytest.fail("prepare swallowed a cancellation")


@pytest.mark.parametrize(
    ("name", "raw", "safe"),
    [
        ("think", '{"thought": "safe"}', True),
        ("think", "{}", False),
        ("think", '{"thought": 1}', False),
        ("think", '{"thought": "bug"}', False),
        ("none", "{}", False),
    ],
)
def test_only_a_call_known_to_be_safe_runs_beside_others(
    house: House, name: str, raw: str, safe: bool
) -> None:
    """Contracts 2: default false; others are barriers."""
    assert house.registry.parallel_safe(name, raw, "s1") is safe
