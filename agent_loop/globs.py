"""Gitignore-style globs, as a person writes them in a rule."""

import re
from functools import lru_cache
from typing import Any, Final

from pathspec import GitIgnoreSpec

_WILD: Final = re.compile(r"\[[^\]]*\]|[*?]")


def is_glob(text: str) -> bool:
    """Whether `text` can match anything: not empty, no comment, no negation, nothing left open."""
    try:
        return [pattern.include for pattern in _spec(text).patterns] == [True]
    except ValueError:
        return False


def matches(glob: str, path: str) -> bool:
    """Whether `glob`, anchored as in gitignore, matches `path`, which is relative to where it is anchored."""
    return bool(_spec(glob).match_file(path))


def is_floating(glob: str) -> bool:
    """Whether it matches at any depth: no slash but at its end."""
    return "/" not in glob.rstrip("/")


def literal_length(glob: str) -> int:
    """How many of its characters stand for themselves; the longer, the more exactly somebody meant it."""
    return len(_WILD.sub("", glob))


@lru_cache(maxsize=1024)
def _spec(glob: str) -> Any:
    return GitIgnoreSpec.from_lines([glob])
