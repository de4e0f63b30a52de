"""What every tool does with the path a model wrote: find it inside the roots, and find it there again."""

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


def refuse_moved(ctx: ToolContext, real: str) -> ToolOutcome | None:
    """An outcome when a real path, looked at before, leads elsewhere by now; a link was put in its way."""
    try:
        if ctx.workspace.roots.resolve(real) == real:
            return None
    except OutsideRoots:
        pass

    shown = ctx.workspace.roots.shown(real)
    return failed(f"{shown} leads elsewhere since the call was looked at; call again.", "CHANGED")
