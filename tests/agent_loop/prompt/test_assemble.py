"""Sections to one text."""

import pytest

from agent_loop.prompt.assemble import Section, assemble


@pytest.mark.parametrize(
    ("sections", "text"),
    [
        ([], ""),
        ([Section("a", 0, "A")], "A"),
        ([Section("b", 2, "B"), Section("a", 1, "A")], "A\n\nB"),
        ([Section("b", 1, "B"), Section("a", 1, "A")], "B\n\nA"),
        ([Section("a", 0, "A"), Section("none", 1, ""), Section("blank", 2, " \n")], "A"),
        ([Section("a", 0, "\n A\n"), Section("b", 1, "B\nB ")], "A\n\nB\nB"),
    ],
)  # fmt: skip
def test_sections_stand_in_order_a_blank_line_between_them(sections: list[Section], text: str) -> None:
    """Loop specification 1.8: sorted, empty ones dropped; equal orders as registered."""
    assert assemble(sections) == text
