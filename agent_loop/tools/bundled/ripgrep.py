"""Runs ripgrep, for the tools that look through many files: fast, and blind to what git ignores.

It comes with its PyPI package, beside our own script, or from the person's PATH. It runs like any command,
so a cancel ends it, and no more of its output is made than is wanted.
"""

import os
import shlex
import shutil
import sysconfig
from functools import lru_cache
from typing import Final

from agent_loop.record import record
from agent_loop.tools.tool import ToolContext, ToolRefused
from agent_loop.workspace.commands import Command

TIMEOUT_S: Final = 60.0
OUTPUT_BYTES: Final = 60_000
# A cloned repository, or a person's habits, must not change what a tool finds.
_ALWAYS: Final = ("--no-config", "--no-messages", "--color=never")
_ERROR: Final = "rg: "
_ALL: Final = ("*", "**", "**/*")


@record
class Found:
    """Lines of output, and whether there would have been more."""

    lines: tuple[str, ...]
    more: bool


@lru_cache(maxsize=1)
def ripgrep_path() -> str | None:
    """Where it is; None when it is not installed."""
    beside = os.path.join(sysconfig.get_path("scripts"), "rg")
    return beside if os.access(beside, os.X_OK) else shutil.which("rg")


def name_flags(glob: str | None, *, hidden: bool) -> list[str]:
    """Which names to look at. A glob overrides whatever is ignored, so one that fits all is none to ripgrep,
    and hidden names are taken out again.
    """
    flags = [f"--glob={glob}"] if glob and glob not in _ALL else []
    if hidden:
        return [*flags, "--hidden", "--glob=!.git"]
    return [*flags, "--glob=!.*"] if flags else flags


async def run_ripgrep(ctx: ToolContext, arguments: list[str], real: str, limit: int) -> Found:
    """At most `limit` lines about what is at or below `real`, whose paths are as relative as can be.

    Raises:
        ToolRefused: The pattern is none, or it took too long; the text says so.
        OSError: It could not be started.
    """
    base, shell = _command(ctx.workspace.roots.cwd, arguments, real, limit)
    result = await ctx.workspace.helpers.run(
        Command(shell, base, TIMEOUT_S, OUTPUT_BYTES), lambda text, truncated: None
    )
    if result.timed_out:
        raise ToolRefused(f"it took longer than {TIMEOUT_S:.0f} s; narrow the path.", code="TIMEOUT")
    lines = result.output.splitlines()
    if lines and lines[0].startswith(_ERROR):
        words = " ".join(line.strip() for line in lines).removeprefix(_ERROR)
        raise ToolRefused(words[:500], code="INVALID_ARGS")
    shown = tuple(line.removeprefix("./") for line in lines[:limit])
    return Found(shown, len(lines) > limit or bool(result.omitted_bytes))


def _command(cwd: str, arguments: list[str], real: str, limit: int) -> tuple[str, str]:
    """Where to run and the shell's line; `head` ends the search as soon as there is enough."""
    base = os.path.realpath(cwd)
    path = os.path.relpath(real, base) if f"{real}/".startswith(f"{base.rstrip('/')}/") else real
    argv = [ripgrep_path() or "rg", *_ALWAYS, *arguments, "--", path]
    return base, f"{shlex.join(argv)} | head -n {limit + 1}"
