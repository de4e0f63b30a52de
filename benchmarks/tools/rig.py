"""A session's folder in this process, and calls of one tool made in it."""

from pathlib import Path
from typing import Any

from agent_loop.tools.tool import Tool, ToolContext, ToolOutcome
from agent_loop.workspace.children import Children
from agent_loop.workspace.fetch import WebFetcher
from agent_loop.workspace.local_commands import LocalCommands
from agent_loop.workspace.local_files import LocalFiles
from agent_loop.workspace.roots import Roots
from agent_loop.workspace.workspace import Workspace


class Running:
    """A turn that nobody stops."""

    fired = False


def context(root: Path) -> ToolContext:
    """For calls in this folder; what they spill goes beside it."""
    commands = LocalCommands(Children(), str(root.parent / "spill"))
    return ToolContext(
        session_id="bench",
        turn=1,
        step=1,
        call_id="c1",
        workspace=Workspace(Roots(str(root)), LocalFiles(), commands, commands, WebFetcher()),
        token=Running(),
        session_state={},
        append=lambda fact: None,
        output=lambda text, truncated: None,
        terminal=lambda terminal: None,
    )


async def call(tool: Tool[Any], ctx: ToolContext, **arguments: object) -> ToolOutcome:
    """Prepare and run; it must work."""
    prepared = await tool.prepare(tool.arguments.model_validate(arguments), ctx)
    outcome = await tool.run(prepared, ctx)
    if outcome.is_error:
        raise RuntimeError(str(outcome.content[0])[:200])
    return outcome
