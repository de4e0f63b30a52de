"""The sections that come with the house: who the agent is, where it works, the project's own rules."""

import platform
from pathlib import Path
from typing import Final

import anyio.to_thread

from agent_loop.events.bus import Disposer
from agent_loop.jsonvalue import clean_text
from agent_loop.prompt.system_prompt import PromptContext, SystemPrompt

RULES_FILE: Final = "AGENTS.md"
RULES_LIMIT_BYTES: Final = 32 * 1024

IDENTITY: Final = """\
You are a coding agent working in a person's project, through their editor. Use the tools to look
before you answer and to do what was asked; say briefly what you did and what came of it. The person
sees every tool call and may refuse one: then find another way or ask. When a tool reports an error,
read it and mend the call."""


def bundled_sections(prompt: SystemPrompt) -> tuple[Disposer, ...]:
    """Register identity, environment and project rules, in that order."""
    rules = _Rules()
    return (
        prompt.section("identity", 0, IDENTITY),
        prompt.section("environment", 100, _environment),
        prompt.section("rules", 200, rules.text),
    )


async def _environment(context: PromptContext) -> str:
    if context.cwd is None:
        return ""
    return f"Working directory: {context.cwd}\nOperating system: {platform.system()}"


class _Rules:
    """The project's AGENTS.md, read once per session so that the prompt's prefix stays the same."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    async def text(self, context: PromptContext) -> str:
        if context.cwd is None:
            return ""
        if context.session_id not in self._texts:
            self._texts[context.session_id] = await anyio.to_thread.run_sync(_read_rules, context.cwd)
        return self._texts[context.session_id]


def _read_rules(cwd: str) -> str:
    path = Path(cwd) / RULES_FILE
    try:
        # Opening a FIFO would hold the thread, and with it the turn, for ever.
        # A link out of the project would send the provider what no tool may read.
        if not path.is_file() or not path.resolve().is_relative_to(Path(cwd).resolve()):
            return ""
        with path.open("rb") as file:
            raw = file.read(RULES_LIMIT_BYTES + 1)
    except OSError:
        return ""
    text = clean_text(raw[:RULES_LIMIT_BYTES].decode(errors="replace")).strip()
    cut = "\n[the rest of the file is left out]" if len(raw) > RULES_LIMIT_BYTES else ""
    return f"The project's rules, from {RULES_FILE}:\n\n{text}{cut}" if text else ""
