"""What a loop works with; handed to it once by the composition root."""

from agent_loop.events.bus import Bus
from agent_loop.llm.registry import LlmRegistry
from agent_loop.prompt.system_prompt import SystemPrompt
from agent_loop.record import record
from agent_loop.tools.registry import ToolRegistry
from agent_loop.workspace.workspace import Workspace


@record
class Services:
    """The rooms one agent's loop may use; `workspace` is its session's own."""

    bus: Bus
    llm: LlmRegistry
    tools: ToolRegistry
    prompt: SystemPrompt
    workspace: Workspace
