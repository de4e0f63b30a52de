"""Keeps the answers a person wants remembered for a project: one private file in the state directory.

1. Never below the project: a cloned repository must not allow itself anything.
2. A change is read, made and written whole under a lock of its own, so that two processes lose nothing.
3. A file that cannot be understood is not touched, and nothing is decided by it.

It blocks: call it in a worker thread.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import orjson

from agent_loop.errors import HarnessError
from agent_loop.plugins.permission.grants import Grant, grant_from_json, grant_to_json
from agent_loop.private_file import claimed, replace_whole

FORMAT: Final = 1
FILE_NAME: Final = "permissions.json"

Grants = Mapping[str, tuple[Grant, ...]]
"""Remembered answers by the real path of their project, the oldest first."""


class GrantsUnreadable(HarnessError):
    """The file with the remembered answers cannot be read or written; the message says why."""

    code = "GRANTS"


class GrantBook:
    """The remembered answers below one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self._path = state_dir / FILE_NAME
        self._read: tuple[tuple[int, ...], Grants] = ((), {})

    def all(self) -> Grants:
        """Every project's.

        Raises:
            GrantsUnreadable: See the class.
        """
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._trouble(error) from error
        # It is replaced whole, so another file is another inode.
        version = (found.st_ino, found.st_mtime_ns, found.st_size)
        if version != self._read[0]:
            self._read = (version, self._parsed())
        return self._read[1]

    def of(self, project: str) -> tuple[Grant, ...]:
        """One project's; raises what `all` does."""
        return self.all().get(project, ())

    def add(self, project: str, grant: Grant) -> None:
        """Remember one more, in place of any other answer to the same question.

        Raises:
            GrantsUnreadable: It could not be written; nothing is changed.
        """
        with self._changing() as grants:
            kept = [it for it in grants.get(project, ()) if it.covered != grant.covered]
            grants[project] = (*kept, grant)

    def remove(self, ids: Iterable[str]) -> None:
        """Forget these; unknown ones are no error.

        Raises:
            GrantsUnreadable: It could not be written; nothing is changed.
        """
        gone = set(ids)
        with self._changing() as grants:
            for project, those in list(grants.items()):
                grants[project] = tuple(grant for grant in those if grant.id not in gone)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, tuple[Grant, ...]]]:
        try:
            with claimed(self._path):
                grants = dict(self.all())
                yield grants
                self._write(grants)
        except OSError as error:
            raise self._trouble(error) from error

    def _write(self, grants: Grants) -> None:
        projects = {
            project: [grant_to_json(grant) for grant in those] for project, those in grants.items() if those
        }
        text = orjson.dumps(
            {"format": FORMAT, "projects": projects}, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        )
        replace_whole(self._path, text)

    def _parsed(self) -> Grants:
        try:
            return _grants_of(orjson.loads(self._path.read_bytes()))
        except OSError as error:
            raise self._trouble(error) from error
        except ValueError as error:
            raise GrantsUnreadable(
                f"{self._path} holds no permissions this version can read; mend it or take it away."
            ) from error

    def _trouble(self, error: OSError) -> GrantsUnreadable:
        return GrantsUnreadable(f"{self._path} cannot be used: {error.strerror}.")


def _grants_of(value: Any) -> Grants:
    """Raises ValueError for what this version did not write."""
    match value:
        case {"format": 1, "projects": dict(projects)} if type(value["format"]) is int:
            return {
                project: tuple(map(grant_from_json, _listed(those))) for project, those in projects.items()
            }
        case _:
            raise ValueError("not format 1")


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("not a list")
    return value
