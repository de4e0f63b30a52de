"""The conversation as lines for a person: one column for who speaks, one for what is said."""

import io
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TextIO

from acp_server.demo_frames import Card, Permission

BOLD: Final = "1"
DIM: Final = "2"
RED: Final = "31"
GREEN: Final = "32"
YELLOW: Final = "33"

_INDENT: Final = 8
_WIDTH: Final = 100
_LINE_START: Final = re.compile(r"(?<=\n)(?=[^\n])")
_SPEAKERS: Final = {
    "agent_message_chunk": ("agent", ""),
    "agent_thought_chunk": ("thinks", DIM),
    "user_message_chunk": ("you", ""),
}
_STATUS: Final = {"completed": GREEN, "failed": RED}


def wants_colour(out: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to colour: a terminal that can, and nobody who set NO_COLOR (see no-color.org)."""
    return out.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


class Screen:
    """Prints as things happen; a chunk at a time, a status behind the last one."""

    def __init__(self, out: TextIO, *, colour: bool) -> None:
        if isinstance(out, io.TextIOWrapper):
            out.reconfigure(errors="replace")  # a terminal that cannot show an arrow is no reason to fail
        self._out = out
        self._colour = colour
        self._speaker = ""
        self._call = ""
        self._newlines = 0

    def note(self, text: str) -> None:
        """A paragraph of our own, before or after the conversation."""
        self._break()
        self._write("\n".join(textwrap.wrap(text, _WIDTH)) + "\n\n")

    def say(self, speaker: str, text: str) -> None:
        """Something said in one piece."""
        self._break()
        self._chunk(speaker, text, BOLD)
        self._break()

    def update(self, update: dict[str, Any], cards: Mapping[str, Card]) -> None:
        """Show one session/update; `cards` holds what is known of each tool call by now."""
        kind = update["sessionUpdate"]
        if kind in _SPEAKERS:
            speaker, style = _SPEAKERS[kind]
            self._chunk(speaker, update["content"].get("text", f"[{update['content']['type']}]"), style)
        elif kind in ("tool_call", "tool_call_update"):
            self._tool(update, cards[update["toolCallId"]])

    def ask(self, permission: Permission) -> None:
        """Show a permission question."""
        self._break()
        choices = " / ".join(option["name"] for option in permission.options)
        self._line("asks", f"{permission.kind} {permission.title}: {choices}?", YELLOW)

    def ended(self, stop_reason: object) -> None:
        """Show why the turn ended."""
        self._break()
        self._line("ended", str(stop_reason), DIM)

    def verdict(self, failures: Sequence[str]) -> None:
        """The last line: all is well, or everything that is not."""
        self._break()
        if failures:
            self._write(self._styled(f"FAILED: {'; '.join(failures)}", RED) + "\n")
        else:
            done = "ended end_turn, file written, command ran, permission asked twice, frames valid, exit 0"
            self._write("\n" + self._styled(f"OK: {done}", GREEN) + "\n")

    def _tool(self, update: dict[str, Any], card: Card) -> None:
        status = self._styled(card.status, _STATUS.get(card.status, DIM)) if "status" in update else ""
        if update["toolCallId"] == self._call and status:
            self._write(f" → {status}")
        elif status:
            self._break()
            self._call = update["toolCallId"]
            self._write(f"{self._label('tool')}{card.kind} {card.title}: {status}")

        # A diff is shown before the question about it, output once it is complete.
        shown = {"pending": ("diff",), "completed": ("content",), "failed": ("content",)}
        items = [item for item in card.content if item["type"] in shown.get(card.status, ())]
        if status and items:
            self._break()
            for item in items:
                self._block(_diff(item) if item["type"] == "diff" else _lines(item))

    def _block(self, lines: Iterable[str]) -> None:
        styles = {"+": GREEN, "-": RED}
        for line in lines:
            self._write(" " * _INDENT + self._styled(f"| {line}", styles.get(line[:1], DIM)) + "\n")

    def _chunk(self, speaker: str, text: str, style: str) -> None:
        if speaker != self._speaker:
            self._break()
            self._speaker = speaker
            self._write(self._label(speaker))
        # Newlines wait for what follows them, so that no block ends in empty lines.
        kept = text.rstrip("\n")
        if kept:
            lines = _LINE_START.sub(" " * _INDENT, "\n" * self._newlines + kept)
            self._write(self._styled(lines, style))
            self._newlines = 0
        self._newlines += len(text) - len(kept)

    def _line(self, speaker: str, text: str, style: str) -> None:
        self._write(f"{self._label(speaker)}{self._styled(text, style)}\n")

    def _break(self) -> None:
        """End whatever line is open."""
        if self._speaker or self._call:
            self._write("\n")
        self._speaker, self._call, self._newlines = "", "", 0

    def _label(self, speaker: str) -> str:
        return self._styled(speaker.ljust(_INDENT), BOLD)

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._colour and style else text

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()


def _diff(item: dict[str, Any]) -> list[str]:
    old, new = item.get("oldText"), item["newText"]
    head = f"{item['path']} (new file)" if old is None else item["path"]
    return [
        head,
        *(f"- {line}" for line in (old or "").splitlines()),
        *(f"+ {line}" for line in new.splitlines()),
    ]


def _lines(item: dict[str, Any]) -> list[str]:
    """The lines of a text, without the fence that keeps clients from reading it as Markdown."""
    lines: list[str] = item["content"].get("text", "").splitlines()
    return [line for line in lines if not line.startswith("```")]
