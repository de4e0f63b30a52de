"""The plugin seam: `activate(scope, options)`; everything a plugin registers is undone with its scope."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from agent_loop.agent.registry import Agents
from agent_loop.events.bus import Bus, Disposer, Middleware, Waterfall
from agent_loop.events.moments import Moment
from agent_loop.prompt.system_prompt import SectionText, SystemPrompt
from agent_loop.session.sessions import Sessions
from agent_loop.tools.registry import ToolRegistry
from agent_loop.tools.tool import Tool

log = logging.getLogger(__name__)

M = TypeVar("M", bound=Moment)
V = TypeVar("V")
R = TypeVar("R")


class PluginScope:
    """What one plugin may reach, and what it has registered so far."""

    def __init__(
        self, *, bus: Bus, agents: Agents, sessions: Sessions, tools: ToolRegistry, prompt: SystemPrompt
    ) -> None:
        self.agents = agents
        self.sessions = sessions
        self._bus = bus
        self._tools = tools
        self._prompt = prompt
        self._undo: list[Disposer] = []

    def on(self, event: type[M], listener: Callable[[M], object]) -> None:
        """See `Bus.on`."""
        self.defer(self._bus.on(event, listener))

    def around(self, place: Waterfall[V, R], middleware: Middleware[V, R], *, prepend: bool = False) -> None:
        """See `Bus.around`."""
        self.defer(self._bus.around(place, middleware, prepend=prepend))

    def emit(self, moment: Moment) -> None:
        """See `Bus.emit`."""
        self._bus.emit(moment)

    def tool(self, tool: Tool[Any], *, session_id: str | None = None) -> None:
        """See `ToolRegistry.register`."""
        self.defer(self._tools.register(tool, session_id=session_id))

    def section(self, name: str, order: int, text: SectionText) -> None:
        """See `SystemPrompt.section`."""
        self.defer(self._prompt.section(name, order, text))

    def defer(self, undo: Disposer) -> None:
        """Run `undo` when the scope closes; the last deferred runs first."""
        self._undo.append(undo)

    def close(self) -> None:
        """Undo everything. Idempotent; a raising disposer starves no other."""
        while self._undo:
            try:
                self._undo.pop()()
            except Exception:
                log.exception("a plugin's disposer raised")
