"""What every tool does with the path a model wrote: find it inside the roots, and find it there again."""

import os

from agent_loop.tools.failures import failed
from agent_loop.tools.tool import ToolContext, ToolOutcome, ToolRefused
from agent_loop.workspace.roots import OutsideRoots


def resolve_path(ctx: ToolContext, path: str) -> str:
    """The real path.

    Raises:
        ToolRefused: It is no path at all.
        OutsideRoots: It leads outside the session's roots.
    """
    try:
        return ctx.workspace.roots.resolve(path)
    except ValueError as error:
        raise ToolRefused(f"{error}", code="INVALID_ARGS") from error


def resolve_name(ctx: ToolContext, path: str) -> str:
    """The real directory of a path, and its last name as it stands: of a link the link, not where it leads.

    Raises:
        ToolRefused: It is no path, or the name is one of the session's roots.
        OutsideRoots: Its directory lies outside the session's roots.
    """
    folder, name = os.path.split(path.rstrip("/"))
    if name in ("", ".", ".."):
        real = resolve_path(ctx, path)
    else:
        real = os.path.join(resolve_path(ctx, folder or "."), name)
    if any(os.path.realpath(root) == real for root in ctx.workspace.roots.all):
        raise ToolRefused(f"{path} is where the session works; it stays.", code="INVALID_ARGS")
    return real


def refuse_moved_name(ctx: ToolContext, real: str) -> ToolOutcome | None:
    """The same for a name that was not followed itself."""
    return refuse_moved(ctx, os.path.dirname(real))


def refuse_moved(ctx: ToolContext, real: str) -> ToolOutcome | None:
    """An outcome when a real path, looked at before, leads elsewhere by now; a link was put in its way."""
    try:
        if ctx.workspace.roots.resolve(real) == real:
            return None
    except OutsideRoots:
        pass

    shown = ctx.workspace.roots.shown(real)
    return failed(f"{shown} leads elsewhere since the call was looked at; call again.", "CHANGED")
