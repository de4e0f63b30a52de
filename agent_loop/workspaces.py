"""Makes each session's workspace: its directories on this machine, commands in a sandbox if one is wanted.

Owns what all sessions of a process share for it. Another place for files and commands, such as an editor, is
put `behind` a session by whoever offers it.
"""

import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import to_thread
from anyio.abc import TaskGroup

from agent_loop.config.load import Loaded
from agent_loop.errors import ConfigError
from agent_loop.events.bus import Bus
from agent_loop.events.moments import StatusChanged, TurnEnded
from agent_loop.session.header import SessionHeader
from agent_loop.workspace.children import Children
from agent_loop.workspace.fetch import WebFetcher
from agent_loop.workspace.jobs import Job, Jobs
from agent_loop.workspace.local_commands import LocalCommands
from agent_loop.workspace.local_files import LocalFiles
from agent_loop.workspace.roots import Roots
from agent_loop.workspace.workspace import Workspace

if TYPE_CHECKING:
    from agent_loop.workspace.sandbox import Sandbox

log = logging.getLogger(__name__)


class Workspaces:
    """Those of one harness.

    Attributes:
        children: Every running child process group, for a hard exit.
        behind: Gives a session, by its id, another workspace than the one here; None for that one.
    """

    def __init__(
        self,
        loaded: Loaded,
        environ: Mapping[str, str],
        bus: Bus,
        tasks: TaskGroup,
        job_ended: Callable[[str, Job], None],
    ) -> None:
        """Make workspaces.

        Args:
            tasks: Where background jobs run.
            job_ended: Told of each, with its session's id, that ended by itself.
        """
        self.children = Children()
        self.behind: Callable[[str, Workspace], Workspace] | None = None
        self._allow_private = loaded.settings.fetch.allow_private
        self._spill = str(loaded.state_dir / "spill")
        self._sandbox = sandbox_of(loaded, environ)
        self._works = self._sandbox is None
        self._tasks = tasks
        self._job_ended = job_ended
        self._jobs: dict[str, Jobs] = {}
        bus.on(TurnEnded, self._turn_ended)
        bus.on(StatusChanged, self._status_changed)

    async def require(self) -> None:
        """See to it that commands can be run as the settings want it.

        Raises:
            ConfigError: They want a sandbox, and there is none to be had.
        """
        if self._works or self._sandbox is None:
            return
        if (trouble := await to_thread.run_sync(sandbox_trouble, self._sandbox)) is not None:
            raise ConfigError(
                f"Commands are to run in a sandbox, and there is none: {trouble}. Nothing is run without it;"
                " --sandbox off does without.",
                path="agent.sandbox",
            )
        self._works = True

    def of(self, header: SessionHeader, additional: tuple[str, ...]) -> Workspace:
        """A session's own, when it opens."""
        roots = Roots(header.cwd or os.getcwd(), additional)
        helpers = LocalCommands(self.children, self._spill)
        commands = helpers
        if self._sandbox is not None:
            commands = LocalCommands(self.children, self._spill, roots=roots, sandbox=self._sandbox)
        fetcher = WebFetcher(allow_private=self._allow_private)
        jobs = Jobs(self._tasks, commands, partial(self._job_ended, header.id), _report)
        self._jobs[header.id] = jobs
        here = Workspace(roots, LocalFiles(), commands, helpers, fetcher, self._sandbox, jobs)
        return here if self.behind is None else self.behind(header.id, here)

    def close(self) -> None:
        """End every job; whoever runs the tasks waits for that."""
        for jobs in self._jobs.values():
            jobs.close()

    def _turn_ended(self, moment: TurnEnded) -> None:
        if moment.reason.kind == "aborted" and moment.agent_id in self._jobs:
            self._jobs[moment.agent_id].stop_turn(moment.turn)

    def _status_changed(self, moment: StatusChanged) -> None:
        if moment.status == "disposed" and (jobs := self._jobs.pop(moment.agent_id, None)) is not None:
            jobs.close()


def _report(name: str, error: BaseException) -> None:
    log.warning("%s failed", name, exc_info=error)


def sandbox_of(loaded: Loaded, environ: Mapping[str, str]) -> "Sandbox | None":
    """The sandbox that settings ask for; None for none."""
    settings = loaded.settings
    if settings.agent.sandbox == "off":
        return None
    # Few want one, and everybody waits for the start.
    from agent_loop.workspace.sandbox import Sandbox, secrets_of

    state = os.path.realpath(loaded.state_dir)
    home = Path(environ.get("HOME") or os.path.expanduser("~"))
    return Sandbox(
        settings.agent.sandbox,
        network=settings.sandbox.network,
        masked=(*secrets_of(home), state),
        shown=os.path.join(state, "spill"),
    )


def sandbox_trouble(sandbox: "Sandbox") -> str | None:
    """Why commands cannot be confined like that here, and what to do; None when they can. Blocks."""
    from agent_loop.workspace.sandbox import trouble_with

    return trouble_with(sandbox)
