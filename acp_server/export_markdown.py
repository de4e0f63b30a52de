"""A session as Markdown, for a bug report or a note. Pure.

What the model wrote is Markdown already and stays so, but that raw HTML in it is escaped and a fence it left
open is closed: it must not swallow what comes after. Everything else stands in fences longer than any inside.
Where code begins is told by lines, as people write it; whoever must not trust a transcript exports HTML.
"""

import re
from collections.abc import Iterator
from typing import Final, assert_never

from acp_server.conversation import Conversation, Done, Said, Turn, diff_lines
from acp_server.export_html import below, input_in_words, status_in_words
from acp_server.export_times import lasted, utc_in_words
from agent_loop import CardCode, CardDiff, CardItem, CardOutput, CardText

_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")
_TAG: Final = re.compile(r"<(?=[A-Za-z/!?])")
_CODE_SPAN: Final = re.compile(r"((?<!`)(`{1,3})(?!`)[^\n]{1,1000}?(?<!`)\2(?!`))")
_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|~])")


def to_markdown(told: Conversation) -> str:
    """The document."""
    return "\n\n".join(_parts(told)) + "\n"


def _parts(told: Conversation) -> Iterator[str]:
    yield f"# {_plain(told.title)}"
    facts = [f"Session: {_code(told.id)}"]
    if told.cwd is not None:
        facts.append(f"Directory: {_code(told.cwd)}")
    if told.parent is not None:
        facts.append(f"Forked from: {_code(told.parent)}")
    facts += [f"Started: {utc_in_words(told.created_at)}", f"Updated: {utc_in_words(told.updated_at)}"]
    yield "\n".join(f"- {fact}" for fact in facts)
    for turn in told.turns:
        yield from _turn(turn, told.cwd)


def _turn(turn: Turn, cwd: str | None) -> Iterator[str]:
    yield f"## Turn {turn.number} · {utc_in_words(turn.started_at)}"
    for entry in turn.entries:
        yield from _said(entry) if isinstance(entry, Said) else _card(entry, cwd)
    after = "" if turn.ended_at is None else f" ({lasted(turn.ended_at - turn.started_at)})"
    yield f"*Turn {turn.number} ended: {_plain(turn.ending)}{after}*"


def _said(entry: Said) -> Iterator[str]:
    match entry.speaker:
        case "you":
            yield "**You**"
            yield "\n".join(f"> {line}".rstrip() for line in _harmless(entry.text).split("\n"))
        case "agent":
            yield "**Agent**"
            yield _harmless(entry.text)
        case "thought":
            yield f"<details><summary>Thought</summary>\n\n{_harmless(entry.text)}\n\n</details>"
        case _:
            assert_never(entry.speaker)


def _card(done: Done, cwd: str | None) -> Iterator[str]:
    card = done.card
    notes = "".join(f" · {_plain(note)}" for note in done.notes)
    yield f"**{card.kind}** {_code(card.title)} · {status_in_words(card)}{notes}"
    for item in card.body:
        yield _item(item, cwd)
    if card.input is not None and not card.body:
        yield _fenced(input_in_words(card), "json")


def _item(item: CardItem, cwd: str | None) -> str:
    match item:
        case CardText(text):
            return _harmless(text)
        case CardCode(text, language):
            return _fenced(text, language if language.isalnum() else "")
        case CardOutput(text, truncated):
            rest = "\n\n*part of the output is left out*" if truncated else ""
            return _fenced(text.rstrip("\n"), "console") + rest
        case CardDiff(path, old, _):
            new = " (new file)" if old is None else ""
            lines = "\n".join(diff_lines(item)) or "nothing changed"
            return f"{_code(below(path, cwd))}{new}\n\n{_fenced(lines, 'diff')}"
        case _:
            assert_never(item)


def _harmless(text: str) -> str:
    """Markdown whose raw HTML is escaped and whose last fence is closed."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        if fence:
            if found and found[1].startswith(fence) and not found[2].strip():
                fence = ""
            lines.append(line)
        elif found:
            fence = found[1]
            lines.append(_TAG.sub("&lt;", line))
        else:
            lines.append(_without_tags(line))
    return "\n".join([*lines, fence] if fence else lines)


def _without_tags(line: str) -> str:
    """A line of prose with its tags escaped; in a code span they are text already."""
    made, end = [], 0
    for span in _CODE_SPAN.finditer(line):
        made += [_TAG.sub("&lt;", line[end : span.start()]), span[0]]
        end = span.end()
    return "".join([*made, _TAG.sub("&lt;", line[end:])])


def _plain(text: str) -> str:
    """Text that is no Markdown."""
    return _SPECIAL.sub(r"\\\1", text)


def _code(text: str) -> str:
    """Text in a code span on its line."""
    ticks = "`"
    while ticks in text:
        ticks += "`"
    pad = " " if text[:1] == "`" or text[-1:] == "`" else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def _fenced(text: str, language: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
