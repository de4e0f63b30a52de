"""The tools that come with the house."""

from typing import Any

from agent_loop.tools.bundled.delete import Delete
from agent_loop.tools.bundled.edit import EditFile
from agent_loop.tools.bundled.fetch_url import FetchUrl
from agent_loop.tools.bundled.find import Find
from agent_loop.tools.bundled.jobs import JobKill, JobOutput
from agent_loop.tools.bundled.list_dir import ListDir
from agent_loop.tools.bundled.move import Move
from agent_loop.tools.bundled.read import Read
from agent_loop.tools.bundled.ripgrep import ripgrep_path
from agent_loop.tools.bundled.run_command import RunCommand
from agent_loop.tools.bundled.search import Search
from agent_loop.tools.bundled.update_plan import UpdatePlan
from agent_loop.tools.bundled.write import Write
from agent_loop.tools.tool import Tool


def bundled_tools() -> tuple[Tool[Any], ...]:
    """One of each, in the order a model is told of them; nobody is told of a tool that cannot work here."""
    looking: tuple[Tool[Any], ...] = (Search(), Find()) if ripgrep_path() is not None else ()
    changing: tuple[Tool[Any], ...] = (EditFile(), Write(), Delete(), Move())
    running: tuple[Tool[Any], ...] = (RunCommand(), JobOutput(), JobKill())
    return (Read(), ListDir(), *looking, *changing, *running, FetchUrl(), UpdatePlan())
