"""Sections to one text. Pure."""

from collections.abc import Sequence

from agent_loop.record import record


@record
class Section:
    """One part of the system prompt; lower `order` stands earlier, equal orders as registered."""

    name: str
    order: int
    text: str


def assemble(sections: Sequence[Section]) -> str:
    """Non-empty sections by order, a blank line between them."""
    texts = (section.text.strip() for section in sorted(sections, key=lambda section: section.order))
    return "\n\n".join(text for text in texts if text)
