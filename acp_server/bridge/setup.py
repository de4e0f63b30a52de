"""What an editor hands over when it opens a session, checked."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setup:
    """Where a session works.

    Attributes:
        additional: Directories besides `cwd` that tools may touch, in the editor's order.
        warnings: What the person should know of what was not done.
    """

    cwd: str
    additional: tuple[str, ...]
    warnings: tuple[str, ...]
