"""Reads a shell line into its simple commands. Pure.

1. It says too little rather than something false: whatever is not surely understood is `Unreadable`.
   That are here-documents, functions, loops and conditions, arithmetic, and expansions beyond a name.
2. Every character is looked at once, from left to right, as the shell does.
"""

import os
import re
from typing import Final

from agent_loop.plugins.permission.shell import Script, Simple, Unreadable, Word

LONGEST_CHARS: Final = 20_000
DEEPEST: Final = 10

_ENDS_WORD: Final = " \t\n;&|<>()"
_RESERVED: Final = re.compile(
    r"!|\{|\}|\[\[|case|coproc|do|done|elif|else|esac|fi|for|function|if|in|select|then|time|until|while"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_SKIPPED: Final = re.compile(r"(?:[ \t]|\\\n)*(?:#[^\n]*)?")
_REDIRECTION: Final = re.compile(r"<<|[<>]\(|>>|>\||<>|[<>]&|[<>]")
_NAME: Final = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]*\}|[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
# Quoted in any part, it is no home: ~\/x is a file of that name.
_HOME: Final = re.compile(r"~[A-Za-z0-9._-]*(?:/|$)")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_NO_FILE: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr"})


def read_shell(line: str) -> Script:
    """All simple commands of a line.

    Raises:
        Unreadable: It is not surely understood.
    """
    if len(line) > LONGEST_CHARS:
        raise Unreadable("it is too long")
    if _CONTROL.search(line):
        raise Unreadable("it holds control characters")
    reader = _Reader(line)
    reader.read_list("")
    return Script(tuple(reader.commands), reader.opaque)


class _Reader:
    """Walks over one text; `at` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.commands: list[Simple] = []
        self.opaque = False

    def read_list(self, end: str) -> None:
        """Read commands up to and with `end`: `)`, or nothing for the end of the text."""
        while self._joined(end, self._command()):
            pass

    def _command(self) -> bool:
        """Read one simple command or subshell; whether there was one."""
        words: list[Word] = []
        reads: list[Word] = []
        writes: list[Word] = []
        assigns = grouped = False
        while True:
            self._skip()
            char = self._peek()
            if char == "" or char in ";&|\n)":
                break
            if char in "<>":
                self._redirection(reads, writes)
                continue
            if grouped or (char == "(" and (words or assigns or reads or writes)):
                raise Unreadable("a parenthesis stands where none is expected")
            if char == "(":
                self._nested()
                grouped = True
                continue
            word, raw = self._word()
            if raw.isdigit() and self._peek() in ("<", ">"):
                continue  # the number of the descriptor that is redirected
            if not words and _RESERVED.fullmatch(word.text or ""):
                raise Unreadable(f"{word.text} is no simple command")
            if not words and _ASSIGNMENT.match(raw):
                assigns = True
            else:
                words.append(word)
        if words or assigns or reads or writes:
            self.commands.append(Simple(tuple(words), assigns, tuple(reads), tuple(writes)))
        return bool(words or assigns or reads or writes or grouped)

    def _joined(self, end: str, found: bool) -> bool:
        """Step over what stands behind a command; whether another may follow."""
        char = self._peek()
        if char in ("", ")"):
            if char != end:
                raise Unreadable("a parenthesis is not closed, or not opened")
            self.at += len(char)
            return False
        pair = self.text[self.at : self.at + 2]
        if pair == ";;" or (char != "\n" and not found):
            raise Unreadable("an operator joins nothing")
        self.at += 2 if pair in ("&&", "||", "|&") else 1
        return True

    def _nested(self) -> None:
        if self.depth == DEEPEST:
            raise Unreadable("it is nested too deeply")
        self.depth += 1
        self.at += 1
        self.read_list(")")
        self.depth -= 1

    def _redirection(self, reads: list[Word], writes: list[Word]) -> None:
        operator = _REDIRECTION.match(self.text, self.at)
        assert operator is not None
        if operator[0] in ("<<", "<(", ">("):
            raise Unreadable(f"{operator[0]} is more than a redirection")
        self.at = operator.end()
        self._skip()
        target, raw = self._word()
        if not raw:
            raise Unreadable("a redirection leads nowhere")
        if target.text in _NO_FILE or (operator[0].endswith("&") and (raw.isdigit() or raw == "-")):
            return
        (reads if operator[0] in ("<", "<&") else writes).append(target)

    def _word(self) -> tuple[Word, str]:
        """The word at `at`, and how it is written."""
        start, parts, known, is_glob = self.at, list[str](), True, False
        while (char := self._peek()) and char not in _ENDS_WORD:
            if char == "'":
                parts.append(self._single_quoted())
            elif char == '"':
                known &= self._double_quoted(parts)
            elif char == "\\":
                parts.append(self._escaped())
            elif char in "$`":
                known &= self._expansion(parts, quoted=False)
            else:
                is_glob |= char in "*?["
                # Some shells expand {a,b}; none does {}.
                known &= char != "{" or self.text.startswith("{}", self.at)
                parts.append(char)
                self.at += 1
        raw, text = self.text[start : self.at].replace("\\\n", ""), "".join(parts)
        self.opaque |= not known
        if _HOME.match(raw):
            text = os.path.expanduser(text)
        return Word(text if known else None, is_glob), raw

    def _single_quoted(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unreadable("a quote is not closed")
        inner, self.at = self.text[self.at + 1 : end], end + 1
        return inner

    def _double_quoted(self, parts: list[str]) -> bool:
        """Read up to the closing quote; whether all of it is known."""
        known = True
        self.at += 1
        while (char := self._peek()) != '"':
            if char == "":
                raise Unreadable("a quote is not closed")
            if char in "$`":
                known &= self._expansion(parts, quoted=True)
            elif char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                parts.append(self._escaped())
            else:
                parts.append(char)
                self.at += 1
        self.at += 1
        return known

    def _escaped(self) -> str:
        char = self.text[self.at + 1 : self.at + 2]
        if char == "":
            raise Unreadable("it ends in a backslash")
        self.at += 2
        return "" if char == "\n" else char

    def _expansion(self, parts: list[str], *, quoted: bool) -> bool:
        """Step over `$…` or a backquote; whether it is a plain dollar and so known."""
        if self._peek() == "`":
            self._backquoted()
            return False
        self.at += 1
        following = self._peek()
        if self.text.startswith("((", self.at):
            raise Unreadable("it computes")
        if following == "(":
            self._nested()
            return False
        if name := _NAME.match(self.text, self.at):
            self.at = name.end()
            return False
        if following in ("{", "\\") or (not quoted and following in ("'", '"')):
            raise Unreadable("an expansion is more than a name")
        parts.append("$")
        return True

    def _backquoted(self) -> None:
        end = self.text.find("`", self.at + 1)
        inner = self.text[self.at + 1 : end]
        if end < 0 or "\\" in inner:
            raise Unreadable("a backquote is not closed, or holds backslashes")
        script = read_shell(inner)
        self.commands.extend(script.commands)
        self.opaque |= script.opaque
        self.at = end + 1

    def _skip(self) -> None:
        skipped = _SKIPPED.match(self.text, self.at)
        assert skipped is not None
        self.at = skipped.end()

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]
