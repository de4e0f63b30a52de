"""Which paths a session may touch: inside its roots, by real path."""

import os

from agent_loop.record import record


class OutsideRoots(Exception):
    """A path leads out of the session's roots; the message names both, for the model to read."""


@record
class Roots:
    """`cwd` and any further directories, absolute, in order; relative paths count from `cwd`."""

    cwd: str
    additional: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Every root, `cwd` first."""
        return (self.cwd, *self.additional)

    def resolve(self, path: str) -> str:
        """The real, absolute path `path` leads to; it need not exist.

        Raises:
            OutsideRoots: It leads outside every root, through `..` or a link, or nowhere.
            ValueError: It is no path at all (empty, or with a NUL).
        """
        if not path or "\0" in path:
            raise ValueError("a path must not be empty or contain NUL")
        real = os.path.realpath(os.path.join(self.cwd, os.path.expanduser(path)))
        if os.path.realpath(real) != real:
            # `realpath` stops at a link that leads to itself, and takes what follows as it is spelled.
            raise OutsideRoots(f"{path} goes through a link that leads to itself.")
        for root in self.all:
            real_root = os.path.realpath(root)
            if real == real_root or real.startswith(real_root.rstrip("/") + "/"):
                return real
        raise OutsideRoots(f"{path} leads to {real}, outside the session's roots: {', '.join(self.all)}")

    def spelled(self, real: str) -> str:
        """A real path below a root as whoever opened the session spells it: an editor knows no other name."""
        for root in self.all:
            base = os.path.realpath(root)
            if real == base:
                return root
            if real.startswith(base.rstrip("/") + "/"):
                return os.path.join(root, os.path.relpath(real, base))
        return real

    def shown(self, real: str) -> str:
        """A real path as a person wants to read it: relative to `cwd` when inside it."""
        base = os.path.realpath(self.cwd)
        return (
            os.path.relpath(real, base) if real.startswith(base.rstrip("/") + "/") or real == base else real
        )
