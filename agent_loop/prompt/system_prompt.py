"""Who contributes to the system prompt, and the assembly of it once per step.

A stable prefix is money: sections should give the same text for the same session, or providers
cannot reuse what they cached.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from agent_loop.errors import Duplicate
from agent_loop.events.bus import Bus, Disposer, Waterfall
from agent_loop.prompt.assemble import Section, assemble
from agent_loop.record import record


@record
class PromptContext:
    """Whose prompt it is; `agent_text` is the agent's own part, which stands last."""

    session_id: str
    cwd: str | None
    agent_text: str = ""


SectionText = str | Callable[[PromptContext], Awaitable[str]]


@record
class Assembly:
    """The sections of one prompt on their way through the waterfall."""

    context: PromptContext
    sections: tuple[Section, ...]


ASSEMBLE: Final = Waterfall[Assembly, Awaitable[str]]("system-prompt/assemble")

AGENT_TEXT_ORDER: Final = 1_000_000


class SystemPrompt:
    """The registered sections of one harness."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._sections: dict[str, tuple[int, SectionText]] = {}

    def section(self, name: str, order: int, text: SectionText) -> Disposer:
        """Contribute a section; a callable is asked at every assembly.

        Raises:
            Duplicate: The name is taken.
        """
        if name in self._sections:
            raise Duplicate(f"system prompt section {name!r} is registered already")
        entry = (order, text)
        self._sections[name] = entry

        def dispose() -> None:
            if self._sections.get(name) is entry:
                del self._sections[name]

        return dispose

    async def text(self, context: PromptContext) -> str:
        """The system prompt of one session, through `system-prompt/assemble`; may be empty."""
        sections = [
            Section(name, order, text if isinstance(text, str) else await text(context))
            for name, (order, text) in tuple(self._sections.items())
        ]
        sections.append(Section("agent", AGENT_TEXT_ORDER, context.agent_text))
        return await self._bus.run(ASSEMBLE, Assembly(context, tuple(sections)), _core)


async def _core(assembly: Assembly) -> str:
    return assemble(assembly.sections)
