"""The Markdown models write, as HTML: the common part of it, everything else as it stands. Pure.

Text is escaped before a single tag is added, and no tag added has an attribute but `class` and `start`, so
nothing a model says can act. Links are shown and not made: a reader should see where one leads.
"""

import re
from collections.abc import Iterator
from html import escape
from typing import Final

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_ITEM: Final = re.compile(r"([ \t]*)(?:[-*+]|(\d{1,9})[.)])[ \t]+(.*)")
_QUOTE: Final = re.compile(r" {0,3}>[ ]?(.*)")
_RULE: Final = re.compile(r" {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})")
_TABLE_RULE: Final = re.compile(r"[ \t|:-]*-[ \t|:-]*")
_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,20}")
_INDENT: Final = 2

# Bounds keep hostile text from costing the square of its length.
_CODE_SPAN: Final = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,1000}?)(?<!`)\1(?!`)", re.DOTALL)
_LINK: Final = re.compile(r"\[([^\[\]]{1,300})\]\(([^()\s]{1,1000})\)")
_MARKS: Final = (
    (re.compile(r"\*\*(?=\S)(.{1,500}?)(?<=\S)\*\*", re.DOTALL), "strong"),
    (re.compile(r"~~(?=\S)(.{1,500}?)(?<=\S)~~", re.DOTALL), "del"),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]{1,500}?)(?<=\S)\*(?![\w*])"), "em"),
    (re.compile(r"(?<![\w_])_(?=[^\s_])([^_]{1,500}?)(?<=\S)_(?![\w_])"), "em"),
)
_DEEPEST_QUOTE: Final = 8


def prose(text: str, depth: int = 0) -> str:
    """`text` as HTML blocks."""
    return "\n".join(_blocks(text.split("\n"), depth))


def inline(text: str) -> str:
    """Code spans, emphasis and links of one paragraph."""
    made, end = [], 0
    for span in _CODE_SPAN.finditer(text):
        made += [_marked(text[end : span.start()]), f"<code>{escape(span[2].strip())}</code>"]
        end = span.end()
    return "".join([*made, _marked(text[end:])])


def _marked(text: str) -> str:
    text = escape(text, quote=False)
    text = _LINK.sub(r'\1 <span class="url">(\2)</span>', text)
    for mark, tag in _MARKS:
        text = mark.sub(rf"<{tag}>\1</{tag}>", text)
    return text


def _blocks(lines: list[str], depth: int) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif fence := _FENCE.match(line):
            end = _end_of_fence(lines, at + 1, fence[1])
            yield code("\n".join(lines[at + 1 : end]), fence[2])
            at = end + 1
        elif heading := _HEADING.match(line):
            yield f'<p class="h h{len(heading[1])}">{inline(heading[2].rstrip("# "))}</p>'
            at += 1
        elif _RULE.fullmatch(line):
            yield "<hr>"
            at += 1
        elif "|" in line and at + 1 < len(lines) and _is_table_rule(lines[at + 1]):
            end = next((n for n in range(at + 2, len(lines)) if "|" not in lines[n]), len(lines))
            yield _table(line, lines[at + 2 : end])
            at = end
        elif depth < _DEEPEST_QUOTE and _QUOTE.match(line):
            quoted = []
            while at < len(lines) and (quote := _QUOTE.match(lines[at])):
                quoted.append(quote[1])
                at += 1
            yield f"<blockquote>{prose(chr(10).join(quoted), depth + 1)}</blockquote>"
        elif item := _ITEM.match(line):
            end = _end_of_paragraph(lines, at + 1)
            yield _item(item, lines[at + 1 : end])
            at = end
        else:
            end = _end_of_paragraph(lines, at + 1)
            yield f"<p>{inline(chr(10).join(lines[at:end]))}</p>"
            at = end


def code(text: str, language: str = "") -> str:
    """A block of code; a language that is none by its looks is left out."""
    label = f'<span class="language">{escape(language)}</span>' if _LANGUAGE.fullmatch(language) else ""
    return f'<div class="code">{label}<pre>{escape(text)}</pre></div>'


def _end_of_fence(lines: list[str], start: int, fence: str) -> int:
    """Where the fence closes; the end of the text when it never does."""
    for at in range(start, len(lines)):
        mark = lines[at].strip()
        if len(mark) >= len(fence) and not mark.strip(fence[0]):
            return at
    return len(lines)


def _end_of_paragraph(lines: list[str], start: int) -> int:
    for at in range(start, len(lines)):
        line = lines[at]
        if not line.strip() or any(mark.match(line) for mark in (_FENCE, _HEADING, _ITEM, _QUOTE)):
            return at
        if _RULE.fullmatch(line) or ("|" in line and at + 1 < len(lines) and _is_table_rule(lines[at + 1])):
            return at
    return len(lines)


def _item(item: "re.Match[str]", more: list[str]) -> str:
    # One list an item: what a page shows is the same, and no nesting has to be right.
    level = min(len(item[1].expandtabs(4)) // _INDENT, 5)
    words = inline("\n".join([item[3], *(line.strip() for line in more)]))
    if item[2] is None:
        return f'<ul class="i{level}"><li>{words}</li></ul>'
    return f'<ol class="i{level}" start="{int(item[2])}"><li>{words}</li></ol>'


def _is_table_rule(line: str) -> bool:
    return "|" in line and _TABLE_RULE.fullmatch(line) is not None


def _table(head: str, rows: list[str]) -> str:
    def cells(line: str, tag: str) -> str:
        found = line.strip().strip("|").split("|")
        return "".join(f"<{tag}>{inline(cell.strip())}</{tag}>" for cell in found)

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f'<div class="table"><table><tr>{cells(head, "th")}</tr>{body}</table></div>'
