"""The tools that come with the house."""

from typing import Any

from agent_loop.tools.bundled.delete import Delete
from agent_loop.tools.bundled.edit import EditFile
from agent_loop.tools.bundled.list_dir import ListDir
from agent_loop.tools.bundled.move import Move
from agent_loop.tools.bundled.read import Read
from agent_loop.tools.bundled.run_command import RunCommand
from agent_loop.tools.bundled.write import Write
from agent_loop.tools.tool import Tool


def bundled_tools() -> tuple[Tool[Any], ...]:
    """One of each, in the order a model is told of them."""
    return (Read(), EditFile(), Write(), Delete(), Move(), ListDir(), RunCommand())
