"""A session's workspace: its roots, its files, its commands, its way to the web."""

from typing import TYPE_CHECKING

from agent_loop.record import record
from agent_loop.workspace.commands import CommandRunner
from agent_loop.workspace.fetch import Fetcher
from agent_loop.workspace.files import FileAccess
from agent_loop.workspace.roots import Roots

if TYPE_CHECKING:
    from agent_loop.workspace.jobs import Jobs
    from agent_loop.workspace.sandbox import Sandbox


@record
class Workspace:
    """What tools may touch. Made per session by a factory, so that an editor can stand behind it.

    Attributes:
        commands: For the commands a person is asked about and watches.
        sandbox: What confines `commands`; None for nothing.
        jobs: Commands that go on in the background, never in an editor's terminal; None where none can.
        helpers: For programs that belong to a tool; never in a terminal of the editor's.
    """

    roots: Roots
    files: FileAccess
    commands: CommandRunner
    helpers: CommandRunner
    fetcher: Fetcher
    sandbox: "Sandbox | None" = None
    jobs: "Jobs | None" = None
