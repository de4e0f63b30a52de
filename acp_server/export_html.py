"""A session as one HTML page that a person would rather look at. Pure.

The page is whole: no script, no event attribute, nothing fetched from anywhere, and a policy that says so to
the browser. Every text passes `escape`, here or in `export_prose`; that is all that stands between a hostile
transcript and its reader.
"""

import json
from collections.abc import Iterator
from html import escape
from typing import Final, assert_never

from acp_server.codec.card_out import STATUS
from acp_server.conversation import Conversation, Done, Said, Turn, diff_lines
from acp_server.export_prose import code, prose
from acp_server.export_style import STYLE
from acp_server.export_times import clock_time, iso, lasted, utc_in_words
from acp_server.inert import inert
from agent_loop import Card, CardCode, CardDiff, CardItem, CardOutput, CardText, thaw_json

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
FOLDED_FROM_LINES: Final = 40
CONTENTS_FROM_TURNS: Final = 4

_SPEAKERS: Final = {"you": "You", "agent": "Agent"}
_SIGNS: Final = {"+": "add", "-": "cut", "@": "hunk"}


def to_html(told: Conversation) -> str:
    """The page."""
    turns = "\n".join(_turn(turn, told.cwd) for turn in told.turns)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(told.title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>{escape(told.title)}</h1>
<dl class="facts">{"".join(_facts(told))}</dl>
{_contents(told)}</header>
<main>
{turns or '<p class="ended">Nothing was said yet.</p>'}
</main>
<footer>Times are UTC. Exported by acp-server.</footer>
</body>
</html>
"""


def _facts(told: Conversation) -> Iterator[str]:
    yield _fact("Started", _time(told.created_at, utc_in_words(told.created_at)))
    yield _fact("Updated", _time(told.updated_at, utc_in_words(told.updated_at)))
    yield _fact("Turns", str(len(told.turns)))
    if told.cwd is not None:
        yield _fact("Directory", f"<code>{escape(told.cwd)}</code>")
    yield _fact("Session", f"<code>{escape(told.id)}</code>")
    if told.parent is not None:
        yield _fact("Forked from", f"<code>{escape(inert(told.parent))}</code>")


def _fact(name: str, value: str) -> str:
    return f"<div><dt>{name}</dt><dd>{value}</dd></div>"


def _time(ms: int, words: str) -> str:
    return f'<time datetime="{iso(ms)}">{words}</time>'


def _contents(told: Conversation) -> str:
    if len(told.turns) < CONTENTS_FROM_TURNS:
        return ""
    rows = "".join(
        f'<li><a href="#turn-{turn.number}">{escape(_first_words(turn))}</a></li>' for turn in told.turns
    )
    return f"<nav><details><summary>{len(told.turns)} turns</summary><ol>{rows}</ol></details></nav>\n"


def _first_words(turn: Turn) -> str:
    said = next((entry.text for entry in turn.entries if isinstance(entry, Said)), "")
    words = " ".join(said.split())
    return (f"{words[:90]}…" if len(words) > 90 else words) or f"Turn {turn.number}"


def _turn(turn: Turn, cwd: str | None) -> str:
    entries = "\n".join(
        _said(entry) if isinstance(entry, Said) else _card(entry, cwd) for entry in turn.entries
    )
    after = "" if turn.ended_at is None else f" · {lasted(turn.ended_at - turn.started_at)}"
    failed = " failed" if turn.failed else ""
    return (
        f'<section class="turn" id="turn-{turn.number}">\n{entries}\n'
        f'<p class="ended{failed}">Turn {turn.number} ended: {escape(turn.ending)}{after}</p>\n</section>'
    )


def _said(entry: Said) -> str:
    if entry.speaker == "thought":
        return (
            f'<details class="thought"><summary>Thought · {_time(entry.time, clock_time(entry.time))}'
            f'</summary><div class="words">{prose(entry.text)}</div></details>'
        )
    # What a person typed is shown as typed; what a model writes is Markdown.
    words = escape(entry.text) if entry.speaker == "you" else prose(entry.text)
    return (
        f'<article class="said {entry.speaker}"><div class="who"><b>{_SPEAKERS[entry.speaker]}</b>'
        f'{_time(entry.time, clock_time(entry.time))}</div><div class="words">{words}</div></article>'
    )


def _card(done: Done, cwd: str | None) -> str:
    card = done.card
    inside = "".join(_inside(done, cwd))
    is_open = " open" if inside and _lines(card) < FOLDED_FROM_LINES else ""
    bare = "" if inside else " bare"
    return (
        f'<details class="card {escape(card.status)}{bare}"{is_open}><summary>'
        f'<span class="kind">{escape(card.kind)}</span><span class="title">{escape(card.title)}</span>'
        f'<span class="status">{escape(status_in_words(card))}</span></summary>'
        + (f'<div class="inside">{inside}</div>' if inside else "")
        + "</details>"
    )


def status_in_words(card: Card) -> str:
    """ACP's word for the status, but for a cancelled call, for which it has none."""
    return "cancelled" if card.status == "cancelled" else STATUS[card.status].replace("_", " ")


def _lines(card: Card) -> int:
    """How long its longest item is; a change is always worth seeing."""
    return max((item.text.count("\n") for item in card.body if not isinstance(item, CardDiff)), default=0)


def _inside(done: Done, cwd: str | None) -> Iterator[str]:
    card = done.card
    if not any(isinstance(item, CardDiff) for item in card.body):
        for place in card.locations:
            path = below(place.path, cwd)
            words = path if place.line in (None, 1) else f"{path}:{place.line}"
            if words != card.title:
                yield f'<div class="path">{escape(words)}</div>'
    for item in card.body:
        yield _item(item, card.title, cwd)
    if card.input is not None and not card.body:
        yield code(input_in_words(card), "input")
    if done.notes:
        yield f'<div class="notes">{escape(" · ".join(done.notes))}</div>'


def _item(item: CardItem, title: str, cwd: str | None) -> str:
    match item:
        case CardText(text):
            return f"<div>{prose(text)}</div>"
        case CardCode(text, language):
            return code(text, language)
        case CardOutput(text, truncated):
            rest = '<div class="notes">part of the output is left out</div>' if truncated else ""
            return code(text.rstrip("\n")) + rest
        case CardDiff(path, old, _):
            words = below(path, cwd) + (" (new file)" if old is None else "")
            above = "" if words == title else f'<div class="path">{escape(words)}</div>'
            return above + _diff(item)
        case _:
            assert_never(item)


def _diff(diff: CardDiff) -> str:
    lines = diff_lines(diff)
    if not lines:
        return '<div class="notes">nothing changed</div>'
    spans = "".join(f'<span class="{_SIGNS.get(line[:1], "same")}">{escape(line)}</span>' for line in lines)
    return f'<pre class="diff">{spans}</pre>'


def below(path: str, cwd: str | None) -> str:
    """A path as short as it can be told: from the session's directory when it lies in there."""
    return path if cwd is None else path.removeprefix(cwd.rstrip("/") + "/")


def input_in_words(card: Card) -> str:
    """A call's arguments, for cards that show nothing else."""
    return inert(json.dumps(thaw_json(card.input), ensure_ascii=False, indent=2))
