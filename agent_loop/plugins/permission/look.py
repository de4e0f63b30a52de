"""Looks at the disk to see what a call would touch, and takes commands apart.

It blocks: call it in a worker thread. Nothing is changed.
"""

import os
import re
from collections.abc import Iterator, Sequence
from glob import iglob
from itertools import islice
from typing import Final

from agent_loop.plugins.permission.deeds import Call, Deed, Place
from agent_loop.plugins.permission.shell import Simple, Unreadable, Word
from agent_loop.plugins.permission.shell_reader import read_shell
from agent_loop.tools.tool import Effect, PreparedCall

MOST_FILES: Final = 10_000
"""Files below a folder to be deleted or moved, or names that stand for a `*`, that are looked at."""

_LONGEST_PATH_CHARS: Final = 4096
_MOST_WILD_FOLDERS: Final = 2
_MOST_FOLDERS: Final = 10
_JOINS: Final = re.compile(r"[=:,@]")


def look_at(call: PreparedCall) -> Call:
    """The deeds of a call, with every path by all names it is known by here."""
    effect, directories = call.prepared.effect, call.ctx.workspace.roots
    roots = tuple(
        dict.fromkeys(each for root in directories.all for each in (os.path.realpath(root), root.rstrip("/")))
    )
    if effect.shell is not None:
        return _Command(call.name, effect, effect.shell).look(roots)

    spelled = [text for text in call.arguments.values() if isinstance(text, str)]
    aliases = [place for text in spelled for place in _places(os.path.expanduser(text), directories.cwd)]
    deeds, whole = [], True
    for path in effect.paths:
        names = dict.fromkeys([path, *(name for it in aliases if it.real == path for name in it.names)])
        places = [Place(path, tuple(names), os.path.isdir(path))]
        if effect.kind in ("delete", "move"):
            places += islice(_below(path), MOST_FILES)
            whole = whole and len(places) <= MOST_FILES
        deeds.append(Deed(call.name, (effect.kind,), tuple(places), domain=effect.domain))
    return Call(tuple(deeds) or (Deed(call.name, (effect.kind,), domain=effect.domain),), roots, whole)


class _Command:
    """A command line that is being looked at; `folders` are those its words may count from."""

    def __init__(self, tool: str, effect: Effect, line: str) -> None:
        self._tool = tool
        self._kind = effect.kind
        self._line = line
        self._folders = [effect.cwd or "/"]
        self._whole = True

    def look(self, roots: tuple[str, ...]) -> Call:
        deeds: list[Deed] = []
        try:
            script = read_shell(self._line)
        except Unreadable:
            self._whole = False
        else:
            self._whole = not script.opaque
            for command in script.commands:
                deeds += self._deeds(command)
                self._follow(command)
        # What nobody can read is a command all the same, of no words.
        return Call(tuple(deeds) or (Deed(self._tool, (self._kind,), argv=()),), roots, self._whole)

    def _deeds(self, command: Simple) -> Iterator[Deed]:
        places = tuple(place for word in command.words for place in self._named_by(word))
        argv = tuple(None if word.is_glob else word.text for word in command.argv)
        yield Deed(self._tool, (self._kind,), places, argv, not command.assigns)
        for word in command.writes:
            for folder in self._folders:
                target = tuple(_places(word.text or "", folder))
                yield Deed(self._tool, (self._kind, "write"), target)

    def _named_by(self, word: Word) -> Iterator[Place]:
        """Every file a word might name, also behind `--option=`, `-o`, `host:` and `@`."""
        if word.text is None:
            return
        texts = {word.text, *_JOINS.split(word.text)}
        if word.text.startswith("-"):
            texts.add(word.text[2:])
        for folder in self._folders:
            for text in texts:
                yield from _places(text, folder)
            if word.is_glob:
                for name in self._matching(word.text, folder):
                    yield from _places(name, folder)

    def _matching(self, pattern: str, folder: str) -> list[str]:
        # Each further folder that is not named multiplies the search; shells differ in what [^a] is.
        wild = sum(any(char in part for char in "*?[") for part in pattern.split("/"))
        if wild > _MOST_WILD_FOLDERS or "[^" in pattern:
            self._whole = False
            return []
        names = list(islice(iglob(pattern, root_dir=folder), MOST_FILES))
        self._whole = self._whole and len(names) < MOST_FILES
        return names

    def _follow(self, command: Simple) -> None:
        """From a `cd` on, words may count from there as well; it may fail, or be in a subshell."""
        words = [word.text for word in command.argv]
        if not words or words[0] not in ("cd", "pushd", "chdir"):
            return
        target = words[-1] or "" if len(words) > 1 else os.path.expanduser("~")
        self._folders += [os.path.join(folder, target) for folder in self._folders]
        if len(self._folders) > _MOST_FOLDERS:
            del self._folders[_MOST_FOLDERS:]
            self._whole = False


def _places(text: str, folder: str) -> Sequence[Place]:
    """The place a text names; none when it cannot be a path at all."""
    if not text or len(text) > _LONGEST_PATH_CHARS:
        return ()
    path = os.path.join(folder, text)
    try:
        real = os.path.realpath(path)
    except ValueError:
        return ()
    return (Place(real, tuple(dict.fromkeys((real, os.path.normpath(path)))), os.path.isdir(real)),)


def _below(path: str) -> Iterator[Place]:
    if os.path.islink(path):
        return
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            inside = os.path.join(folder, name)
            yield Place(inside, (inside,), name in folders)
