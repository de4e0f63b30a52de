"""The text of an HTML page, as a model reads it: headings, lists and links, without the rest. Pure."""

import re
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

_SILENT: Final = {"script", "style", "noscript", "template", "svg", "iframe"}
_BLOCK: Final = re.compile(
    "address|article|aside|blockquote|dd|div|dl|dt|fieldset|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|p"
    "|pre|section|table|title|tr|ul"
)
_MARKS: Final = {"li": "- ", **{f"h{level}": "#" * level + " " for level in range(1, 7)}}
_SPACE: Final = re.compile(r"[ \t\r\n\f\xa0]+")


def page_text(html: str, url: str) -> str:
    """The text; links are `[words](address)`, from the page's own address."""
    reader = _Reader(url)
    reader.feed(html)
    reader.close()
    return reader.text()


class _Reader(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self._url = url
        self._parts: list[str] = []
        self._silent: list[str] = []
        self._preformatted = 0
        self._links: list[tuple[int, str]] = []

    def text(self) -> str:
        """All that was said, without runs of empty lines."""
        lines = [line.rstrip() for line in "".join(self._parts).split("\n")]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _SILENT:
            self._silent.append(tag)
        if self._silent:
            return

        if _BLOCK.fullmatch(tag) or tag == "br":
            self._break("\n" if tag in ("br", "li", "tr") else "\n\n")
        if tag == "pre":
            self._preformatted += 1
        if tag in ("td", "th"):
            self._parts.append(" | ")
        if tag == "a" and (href := dict(attrs).get("href")):
            self._links.append((len(self._parts), href))
        self._parts.append(_MARKS.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag in self._silent:
            # Whatever was left open inside ends with it.
            del self._silent[self._silent.index(tag) :]
            return
        if self._silent:
            return

        if tag == "pre":
            self._preformatted = max(self._preformatted - 1, 0)
        if tag == "a" and self._links:
            self._close_link(*self._links.pop())
        if _BLOCK.fullmatch(tag) and tag not in ("li", "tr"):
            self._break("\n\n")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._parts.append(data if self._preformatted else _SPACE.sub(" ", data))

    def _break(self, lines: str) -> None:
        if any(self._parts):
            self._parts.append(lines)

    def _close_link(self, start: int, href: str) -> None:
        words = _SPACE.sub(" ", "".join(self._parts[start:])).strip()
        try:
            address = urljoin(self._url, href)
        except ValueError:
            return
        if words and address.startswith(("http://", "https://")) and not href.startswith("#"):
            self._parts[start:] = [f"[{words}]({address})"]
