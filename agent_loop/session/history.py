"""What the model sees of a session: facts folded into messages, forward only, never rescanned.

Pure. Messages are frozen and shared; whoever wants to change a request replaces them.
"""

import json
from collections.abc import Iterable

from agent_loop.events.facts import (
    AssistantMessage,
    ContextMessage,
    LogRow,
    SteeringMessage,
    ToolResult,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from agent_loop.messages import Content, Message, Source, Text, ToolResultBlock


class History:
    """The messages derived so far."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._turn_began_at = 0

    def fold(self, rows: Iterable[LogRow]) -> None:
        """Take in further facts, in log order."""
        for fact in rows:
            match fact:
                case UserMessage(content=content):
                    self._add(content)
                case AssistantMessage(content=content) if content:
                    self._messages.append(Message("assistant", content))
                case ToolResult(call_id=call_id, content=content, is_error=is_error):
                    self._add((ToolResultBlock(call_id, content, is_error),))
                case ContextMessage(content=content, source=source):
                    self._add(_tagged("context", content, source))
                case SteeringMessage(content=content, source=source):
                    self._add(_tagged("steering", content, source))
                case TurnStart():
                    self._turn_began_at = len(self._messages)
                case TurnEnd(reason=reason) if reason.kind == "refusal":
                    del self._messages[self._turn_began_at :]
                case _:
                    pass

    def messages(self) -> tuple[Message, ...]:
        """Everything the next request should carry, oldest first."""
        return tuple(self._messages)

    def _add(self, content: tuple[Content, ...]) -> None:
        self._messages.append(Message("user", content))


def _tagged(tag: str, content: tuple[Content, ...], source: Source) -> tuple[Content, ...]:
    kind = json.dumps(str(source.get("kind", "unknown")))
    return (Text(f"<{tag} source={kind}>\n"), *content, Text(f"\n</{tag}>"))
