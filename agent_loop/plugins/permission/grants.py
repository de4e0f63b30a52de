"""Remembered answers: what exactly a person allowed or rejected for longer than one call. Pure.

A grant covers the very same thing again and nothing like it: the same command line, the same files, the
same host. Who wants more writes a rule.
"""

from typing import Any, Final, get_args

from agent_loop.jsonvalue import clean_text
from agent_loop.messages import Json
from agent_loop.plugins.permission.approver import (
    ALLOW_ONCE,
    ALLOW_PROJECT,
    ALLOW_SESSION,
    REJECT_ONCE,
    REJECT_PROJECT,
    Option,
)
from agent_loop.record import record
from agent_loop.session.titles import one_line
from agent_loop.tools.tool import EffectKind, PreparedCall

LONGEST_CHARS: Final = 4_000
"""Of a command or a path; longer ones are not remembered."""

_SHOWN_CHARS: Final = 80
_DOING: Final[dict[EffectKind, str]] = {
    "none": "using",
    "read": "reading",
    "write": "writing",
    "delete": "deleting",
    "move": "moving",
    "execute": "running",
    "fetch": "fetching from",
    "other": "using",
}


@record
class Covered:
    """What is done again when all of this is the same.

    Attributes:
        tool: For effects nobody can say more of than which tool has them, else None.
        cwd: Where a command runs.
    """

    kind: EffectKind
    tool: str | None = None
    paths: tuple[str, ...] = ()
    shell: str | None = None
    cwd: str | None = None
    domain: str | None = None

    @property
    def text(self) -> str:
        """What it is, in full, on one line."""
        what = self.shell or self.domain or " to ".join(self.paths) or f"the tool {self.tool}"
        return f"{_DOING[self.kind]} {one_line(what)}"


@record
class Grant:
    """One remembered answer."""

    id: str
    allows: bool
    covered: Covered
    created_at: int

    @property
    def text(self) -> str:
        """As it stands in a log and in a list: `allowed running npm test`."""
        return f"{'allowed' if self.allows else 'rejected'} {self.covered.text}"


def covered_by(call: PreparedCall) -> Covered | None:
    """What a remembered answer to this call would cover; None when it cannot be said exactly."""
    effect = call.prepared.effect
    said = effect.shell or effect.domain or effect.paths
    text = "".join((*effect.paths, effect.shell or "", effect.cwd or ""))
    # What no JSON can carry could not be compared again.
    if effect.kind in ("none", "read") or len(text) > LONGEST_CHARS or text != clean_text(text):
        return None
    return Covered(
        effect.kind, None if said else call.name, effect.paths, effect.shell, effect.cwd, effect.domain
    )


def options_for(covered: Covered | None, shown: tuple[str, ...]) -> tuple[Option, ...]:
    """What a person can answer.

    Args:
        covered: None when the answer can only be for this once.
        shown: Its paths as they want to read them.
    """
    if covered is None:
        return (ALLOW_ONCE, REJECT_ONCE)
    what = _named(covered, shown)
    return (
        ALLOW_ONCE,
        Option(ALLOW_SESSION, "allow_always", f"Allow {what} for this session"),
        Option(ALLOW_PROJECT, "allow_always", f"Always allow {what} in this project"),
        REJECT_ONCE,
        Option(REJECT_PROJECT, "reject_always", f"Always reject {what} in this project"),
    )


def _named(covered: Covered, shown: tuple[str, ...]) -> str:
    # The card beside the question shows a command whole; a name cut short would say too much or too little.
    if covered.shell is not None:
        return "this exact command"
    what = covered.domain or " to ".join(shown) or f"the tool {covered.tool}"
    if not what.isprintable() or len(what) > _SHOWN_CHARS:
        what = "exactly this"
    return f"{_DOING[covered.kind]} {what}"


def grant_to_json(grant: Grant) -> Json:
    """A grant for a file or a log; `grant_from_json` is the way back."""
    covered = grant.covered
    value: Json = {
        "id": grant.id,
        "effect": "allow" if grant.allows else "deny",
        "createdAt": grant.created_at,
        "kind": covered.kind,
    }
    said: Json = {
        "tool": covered.tool,
        "paths": list(covered.paths) or None,
        "shell": covered.shell,
        "cwd": covered.cwd,
        "domain": covered.domain,
    }
    return {**value, **{name: each for name, each in said.items() if each is not None}}


def grant_from_json(value: Any) -> Grant:
    """The grant a value stands for.

    Raises:
        ValueError: It is none that this version wrote.
    """
    match value:
        case {"id": str(grant_id), "effect": "allow" | "deny" as effect, "createdAt": int(created_at)}:
            kind, paths = value.get("kind"), value.get("paths", ())
        case _:
            raise ValueError("not a remembered answer")
    said = {name: value.get(name) for name in ("tool", "shell", "cwd", "domain")}
    if (
        kind not in get_args(EffectKind)
        or not isinstance(paths, list | tuple)
        or not all(isinstance(path, str) for path in paths)
        or not all(each is None or isinstance(each, str) for each in said.values())
        or not (paths or said["tool"] or said["shell"] or said["domain"])
    ):
        raise ValueError("not a remembered answer")
    return Grant(grant_id, effect == "allow", Covered(kind, paths=tuple(paths), **said), created_at)
