"""A workspace on a real disk with real commands, and what a tool gets of it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_loop.events.facts import PlanChanged, PluginFact
from agent_loop.messages import text_of
from agent_loop.tools.registry import BoundCall, Refusal
from agent_loop.tools.tool import Prepared, Tool, ToolContext, ToolOutcome
from agent_loop.workspace.children import Children
from agent_loop.workspace.fetch import Fetcher, WebFetcher
from agent_loop.workspace.local_commands import LocalCommands
from agent_loop.workspace.local_files import LocalFiles
from agent_loop.workspace.roots import Roots
from agent_loop.workspace.workspace import Workspace


@dataclass
class Turn:
    """The cancel token a tool sees."""

    fired: bool = False


@dataclass
class Workshop:
    """One session's folder, and calls made in it."""

    root: Path
    children: Children = field(default_factory=lambda: Children(0.1))
    turn: Turn = field(default_factory=Turn)
    facts: list[PluginFact | PlanChanged] = field(default_factory=list)
    fetcher: Fetcher = field(default_factory=WebFetcher)
    told: list[tuple[str, bool]] = field(default_factory=list)
    terminals: list[str] = field(default_factory=list)

    def context(self, session_id: str = "s1") -> ToolContext:
        commands = LocalCommands(self.children, str(self.root.parent / "spills"))
        return ToolContext(
            session_id=session_id,
            turn=1,
            step=1,
            call_id="c1",
            workspace=Workspace(Roots(str(self.root)), LocalFiles(), commands, commands, self.fetcher),
            token=self.turn,
            session_state={},
            append=self.facts.append,
            output=lambda text, truncated: self.told.append((text, truncated)),
            terminal=self.terminals.append,
        )

    async def prepare(self, tool: Tool[Any], **arguments: object) -> Prepared:
        return await tool.prepare(tool.arguments.model_validate(arguments), self.context())

    async def run(self, tool: Tool[Any], **arguments: object) -> ToolOutcome:
        ctx = self.context()
        return await tool.run(await self.prepare(tool, **arguments), ctx)

    def file(self, name: str, content: str | bytes = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path


def said(answer: ToolOutcome | Refusal | BoundCall) -> str:
    """What the model reads."""
    assert not isinstance(answer, BoundCall)
    return text_of((answer.outcome if isinstance(answer, Refusal) else answer).content)
