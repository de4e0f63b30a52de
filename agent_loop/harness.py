"""The composition root: settings in, a running harness out.

Owns what is built, in which order, and that everything ends in the reverse one.
"""

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from anyio import to_thread
from anyio.abc import TaskGroup

from agent_loop.agent.agent import AgentOptions
from agent_loop.agent.registry import AgentHandle, Agents, NewAgent
from agent_loop.config.load import Loaded
from agent_loop.config.settings import AgentEntry
from agent_loop.errors import ConfigError, Disposed, HarnessError
from agent_loop.events.bus import Bus
from agent_loop.events.contain import supervise
from agent_loop.ids import new_id
from agent_loop.llm.registry import Keyed, LlmRegistry
from agent_loop.loop.agent_loop import AgentLoop
from agent_loop.messages import Text
from agent_loop.model_choice import ModelChoice
from agent_loop.persistence.jsonl import JsonlStore
from agent_loop.persistence.store import Store
from agent_loop.plugins import retry, titles
from agent_loop.plugins.permission.plugin import Permission
from agent_loop.plugins.scope import PluginScope
from agent_loop.prompt.bundled import bundled_sections
from agent_loop.prompt.system_prompt import SystemPrompt
from agent_loop.session.header import SessionHeader
from agent_loop.session.sessions import Sessions
from agent_loop.sign_in import SignIn
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.tool import Tool
from agent_loop.workspace.children import CLOSING_KILL_GRACE_S
from agent_loop.workspace.jobs import Job
from agent_loop.workspaces import Workspaces

if TYPE_CHECKING:
    from agent_loop.config.credentials import Credentials
    from agent_loop.plugins.permission.grant_book import GrantBook

log = logging.getLogger(__name__)


class Harness:
    """Everything that runs, wired; made by `open_harness`.

    Attributes:
        sign_in: Who is signed in, and how one can be.
    """

    def __init__(
        self, loaded: Loaded, environ: Mapping[str, str], drivers: TaskGroup, keys: "Credentials | None"
    ) -> None:
        self._loaded = loaded
        self._drivers = drivers
        self._warming = self._watching_keys = False
        self.bus = Bus()
        self.workspaces = Workspaces(loaded, environ, self.bus, drivers, self._job_ended)
        self.sessions = Sessions(self.bus)
        self.agents = Agents(self.bus)
        self.llm = LlmRegistry(self.bus)
        self.sign_in = SignIn(loaded, environ, keys)
        self.models = ModelChoice(self.bus, self.llm, loaded.settings, self.sign_in)
        self.tools = ToolRegistry(self.bus, _bundled_tools)
        self.prompt = SystemPrompt(self.bus)
        self._store: Store | ConfigError = loaded.error or _open_store(loaded)
        bundled_sections(self.prompt)
        self.permission = Permission(
            self.plugin_scope(),
            loaded.settings.agent.permission_mode,
            loaded.settings.permission.rules,
            loaded.state_dir,
        )
        titles.activate(self.plugin_scope())
        retry.activate(self.plugin_scope(), loaded.settings.plugins.retry)
        if loaded.settings.plugins.names("invariants"):
            from agent_loop.plugins import invariants

            invariants.activate(self.plugin_scope())
        self._factory = AgentLoop(
            bus=self.bus,
            sessions=self.sessions,
            agents=self.agents,
            llm=self.llm,
            tools=self.tools,
            prompt=self.prompt,
            workspace=self.workspaces.of,
            drivers=drivers,
            store=None if isinstance(self._store, ConfigError) else self._store,
        )
        self.agents.set_factory(self._factory)

    def plugin_scope(self) -> PluginScope:
        """A fresh scope for one plugin."""
        return PluginScope(
            bus=self.bus, agents=self.agents, sessions=self.sessions, tools=self.tools, prompt=self.prompt
        )

    @property
    def store(self) -> Store:
        """Where sessions are kept.

        Raises:
            ConfigError: The settings are broken, or choose a store that is not installed.
        """
        if isinstance(self._store, ConfigError):
            raise self._store
        return self._store

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know of their settings."""
        return self._loaded.warnings

    async def create_session(self, cwd: str, additional: tuple[str, ...] = ()) -> AgentHandle:
        """A fresh, stored session in `cwd` with a running agent.

        Args:
            additional: Further directories that tools may touch.

        Raises:
            ConfigError: The settings are broken, or no usable model is chosen.
            HarnessError: `cwd` (code CWD), or one of `additional` (code ROOT), is no directory.
            StoreError: The session could not be stored.
        """
        new = NewAgent(new_id(), cwd, additional=additional, options=await self._options())
        # Storing is not interrupted; a request cancelled by now shall leave nothing.
        await anyio.lowlevel.checkpoint_if_cancelled()
        return await self._factory.create(new, partial(_require_directories, cwd, *additional))

    async def resume_session(
        self,
        session_id: str,
        check: Callable[[SessionHeader], Awaitable[None]] | None = None,
        additional: tuple[str, ...] = (),
    ) -> AgentHandle:
        """The stored session with an agent that continues it.

        Args:
            check: Sees the stored header before anything is built; what it raises ends the resume.
            additional: Further directories that tools may touch; those of an earlier run are forgotten.
        Raises:
            ConfigError, NotFound, StoreError, Duplicate: See `create_session` and `AgentFactory.resume`.
        """
        options = await self._options()
        await to_thread.run_sync(_require_directories, None, *additional)
        return await self._look_for_key(await self._factory.resume(session_id, options, check, additional))

    async def fork_session(
        self,
        parent_id: str,
        cwd: str,
        check: Callable[[SessionHeader], Awaitable[None]] | None = None,
        additional: tuple[str, ...] = (),
    ) -> AgentHandle:
        """A fresh session that begins with another's whole turns; raises what `resume_session` does."""
        options = await self._options()
        await to_thread.run_sync(_require_directories, cwd, *additional)
        new = NewAgent(new_id(), cwd, additional=additional, options=options)
        return await self._look_for_key(await self._factory.fork(parent_id, new, check))

    def hasten(self) -> None:
        """The process is about to end: running commands get less time to leave."""
        self.workspaces.children.kill_grace_s = CLOSING_KILL_GRACE_S

    def warm_up(self) -> None:
        """Begin, once, what the first prompt would have to wait for; in the background."""
        if not self._warming:
            self._warming = True
            self._drivers.start_soon(supervise, "warm-up", self._load, _report)

    async def aclose(self) -> None:
        """Close what was opened on behalf of all sessions; they are disposed by then."""
        self.workspaces.close()
        await self.llm.aclose()
        if not isinstance(self._store, ConfigError):
            await self._store.aclose()

    async def start_configured(self) -> list[AgentHandle]:
        """The agents the settings name; one that cannot be started is a warning, never a failed start."""
        handles = []
        for entry in self._loaded.settings.agents:
            try:
                handles.append(await self._configured(entry))
            except HarnessError as error:
                log.warning("the configured agent %s was not started: %s", entry.id, error)
        return handles

    async def _configured(self, entry: AgentEntry) -> AgentHandle:
        options = await self._options(entry.model, entry.system_prompt)
        if entry.resume_session_id:
            handle = await self._look_for_key(await self.agents.resume(entry.resume_session_id, options))
            if news := self.models.restore(handle.agent):
                log.warning("the configured agent %s: %s", entry.id, news)
            return handle
        return await self.agents.create(NewAgent(f"{entry.id}-session-{new_id()}", options=options))

    async def _options(self, model: str | None = None, system_prompt: str | None = None) -> AgentOptions:
        if isinstance(self._store, ConfigError):
            raise self._store
        await self.workspaces.require()
        resolved = await self.sign_in.resolve(model)
        options = self.models.options(resolved, system_prompt)
        provider = self.llm.get(resolved.provider_name)
        if isinstance(provider, Keyed):
            provider.use_key(resolved.api_key)
        self._watch_keys()
        return options

    async def _look_for_key(self, handle: AgentHandle) -> AgentHandle:
        """The session its person chose another model for needs that model's key before it goes on."""
        chosen = handle.agent.session.log.model
        if chosen is not None:
            # Whoever cancels now has an open session, which must reach them; the look is bounded.
            with anyio.CancelScope(shield=True):
                await self.sign_in.look(chosen.model)
        return handle

    def _job_ended(self, session_id: str, job: Job) -> None:
        """Let the model know with its next step; nobody is woken for it."""
        # Imported with the first job.
        from agent_loop.tools.bundled.jobs import how_it_ended

        agent = self.agents.get(session_id)
        if agent is not None:
            words = f"[{how_it_ended(job)}. job_output tells what it printed.]"
            with suppress(Disposed):
                agent.inject((Text(words),), {"kind": "job", "job": job.id})

    def _watch_keys(self) -> None:
        if self._watching_keys:
            return
        # Imported with the first session: everybody waits for the start.
        from agent_loop.plugins import new_key

        self._watching_keys = True
        new_key.activate(self.plugin_scope(), self._renew_key)

    async def _renew_key(self, name: str) -> None:
        provider = self.llm.get(name) if self.llm.has(name) else None
        if not isinstance(provider, Keyed):
            return
        newer = await self.sign_in.newer_key(name, refused=provider.api_key)
        if newer is not None:
            provider.use_key(newer)

    async def _load(self) -> None:
        await to_thread.run_sync(_import_for_a_prompt)
        self.tools.load()
        options = await self._options()
        await self.sign_in.look_around()
        await self.models.load(options.model)


@asynccontextmanager
async def open_harness(
    loaded: Loaded, environ: Mapping[str, str] = os.environ, *, keys: "Credentials | None" = None
) -> AsyncIterator[Harness]:
    """Run a harness for as long as the context lasts; sessions must be disposed before it ends.

    Args:
        keys: Where stored keys are looked for; None for where this person keeps them.
    """
    async with anyio.create_task_group() as drivers:
        harness = Harness(loaded, environ, drivers, keys)
        try:
            yield harness
        finally:
            with anyio.CancelScope(shield=True):
                await harness.aclose()
            drivers.cancel_scope.cancel()


def open_store(loaded: Loaded) -> Store:
    """The store the settings choose; nothing is made or connected to before it is used.

    Raises:
        ConfigError: What it needs is not installed, or its address is none.
    """
    url = loaded.settings.store.url
    if url is None:
        return JsonlStore(loaded.state_dir)
    # An extra, and 0.2 s of imports, that only those pay for who chose it.
    from agent_loop.persistence.postgres import PostgresStore

    return PostgresStore(url)


def open_grants(loaded: Loaded) -> "GrantBook":
    """The answers people wanted remembered for their projects; nothing is read before it is asked."""
    # A server's own are looked up by its first call that could change something.
    from agent_loop.plugins.permission.grant_book import GrantBook

    return GrantBook(loaded.state_dir)


def find_ripgrep() -> str | None:
    """Where the ripgrep is that searches; None where projects cannot be searched."""
    # With it come all the tools.
    from agent_loop.tools.bundled.ripgrep import ripgrep_path

    return ripgrep_path()


async def same_directory(one: str, other: str) -> bool:
    """Whether two spellings name one directory, by real path."""
    return await to_thread.run_sync(lambda: os.path.realpath(one) == os.path.realpath(other))


def _open_store(loaded: Loaded) -> Store | ConfigError:
    """The store, or why there is none: an editor's first question is answered either way."""
    try:
        return open_store(loaded)
    except ConfigError as error:
        return error


def _bundled_tools() -> tuple[Tool[Any], ...]:
    # Imported by whoever needs the first tool: no session is asked for its argument models.
    from agent_loop.tools.bundled import bundled_tools

    return bundled_tools()


def _import_for_a_prompt() -> None:
    import agent_loop.loop.turn
    import agent_loop.tools.bundled  # noqa: F401


def _require_directories(cwd: str | None, *additional: str) -> None:
    for path in (cwd, *additional):
        if path is not None and not os.path.isdir(path):
            raise HarnessError(f"{path} is no directory", code="CWD" if path == cwd else "ROOT")


def _report(name: str, error: BaseException) -> None:
    log.warning("the %s failed: %s", name, error)
