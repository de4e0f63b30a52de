"""Who contributes to the system prompt, and when they are asked."""

from collections.abc import Awaitable
from dataclasses import dataclass

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agent_loop.errors import Duplicate
from agent_loop.events.bus import Bus, Next
from agent_loop.prompt.assemble import Section
from agent_loop.prompt.system_prompt import AGENT_TEXT_ORDER, ASSEMBLE, Assembly, PromptContext, SystemPrompt

CONTEXT = PromptContext("s1", "/w", "the agent's own")


@dataclass
class House:
    bus: Bus
    prompt: SystemPrompt


@pytest.fixture
def house() -> House:
    bus = Bus()
    return House(bus, SystemPrompt(bus))


async def test_the_agents_own_text_stands_last(house: House) -> None:
    """Loop specification 1.8: rendered sections, then the agent's own."""
    house.prompt.section("late", AGENT_TEXT_ORDER - 1, "late")
    house.prompt.section("early", 0, "early")

    assert await house.prompt.text(CONTEXT) == "early\n\nlate\n\nthe agent's own"
    assert await house.prompt.text(PromptContext("s1", None)) == "early\n\nlate"


async def test_a_callable_is_asked_at_every_assembly_and_knows_whose_prompt_it_is(house: House) -> None:
    """Loop specification 1.8: evaluated when rendering."""
    asked: list[PromptContext] = []

    async def section(context: PromptContext) -> str:
        asked.append(context)
        return f"asked {len(asked)} times"

    house.prompt.section("counter", 0, section)

    assert await house.prompt.text(PromptContext("s1", None)) == "asked 1 times"
    assert await house.prompt.text(CONTEXT) == "asked 2 times\n\nthe agent's own"
    assert asked == [PromptContext("s1", None), CONTEXT]


def test_a_name_is_used_once_and_free_again_after_its_disposer(house: House) -> None:
    """Loop specification 1: registrations are undone by exactly their own disposer."""
    dispose = house.prompt.section("a", 0, "first")
    with pytest.raises(Duplicate, match="'a'"):
        house.prompt.section("a", 0, "second")

    dispose()
    house.prompt.section("a", 0, "second")
    dispose()

    with pytest.raises(Duplicate):
        house.prompt.section("a", 0, "third")


async def test_a_listener_stands_around_the_assembly(house: House) -> None:
    """Contract 7: `system-prompt/assemble`; sections are replaced, never mutated."""

    async def adds(value: Assembly, next: Next[Assembly, Awaitable[str]]) -> str:
        more = (*value.sections, Section("more", 5, f"for {value.context.session_id}"))
        return (await next(Assembly(value.context, more))).upper()

    house.bus.around(ASSEMBLE, adds)
    house.prompt.section("a", 0, "a")

    assert await house.prompt.text(PromptContext("s1", None)) == "A\n\nFOR S1"


async def test_a_section_may_come_or_go_while_another_is_asked(house: House) -> None:
    """Contract 7: copy-on-write; a plugin that loads meanwhile must not fail somebody's turn."""
    asked, release = anyio.Event(), anyio.Event()
    texts: list[str] = []

    async def slow(_: PromptContext) -> str:
        asked.set()
        await release.wait()
        return "slow"

    async def assembles() -> None:
        texts.append(await house.prompt.text(PromptContext("s1", None)))

    house.prompt.section("slow", 0, slow)
    dispose = house.prompt.section("going", 1, "going")
    async with anyio.create_task_group() as group:
        group.start_soon(assembles)
        await asked.wait()
        house.prompt.section("coming", 2, "coming")
        dispose()
        release.set()
        await checkpoint()

    assert texts == ["slow\n\ngoing"]
    assert await house.prompt.text(PromptContext("s1", None)) == "slow\n\ncoming"
