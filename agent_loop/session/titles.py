"""What a session is called until somebody names it: its first words. Pure."""

import re
from typing import Final

TITLE_LIMIT_CHARS: Final = 60

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def one_line(text: str) -> str:
    """The text as a name: on one line, without control characters, single spaces between its words."""
    return " ".join(_CONTROL.sub(" ", text).split())


def title_from(text: str) -> str:
    """The first line of a prompt that says something, cut between words; empty when none does."""
    words = next((words for line in text.splitlines() if (words := one_line(line))), "")
    if len(words) <= TITLE_LIMIT_CHARS:
        return words
    head, _, _ = words[:TITLE_LIMIT_CHARS].rpartition(" ")
    return f"{head or words[: TITLE_LIMIT_CHARS - 1]}…"
