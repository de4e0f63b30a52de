"""What models and people say to each other: messages made of content blocks.

Owns the neutral shapes and their JSON. A provider turns them into its own wire format; an
editor's blocks become these in `acp_server.codec.prompt_in`.
"""

from collections.abc import Mapping
from typing import Any, Literal, assert_never

from agent_loop.jsonvalue import thaw_json
from agent_loop.record import record

Json = dict[str, Any]
Role = Literal["user", "assistant"]


@record
class Text:
    """Plain text; Markdown where a person reads it."""

    text: str


@record
class Reasoning:
    """What the model thought before it spoke.

    Attributes:
        opaque: Whatever the provider wants back unread (a signature, encrypted details); None for nothing.
    """

    text: str
    opaque: Any = None


@record
class ToolCallBlock:
    """The model asks for a tool.

    Attributes:
        id: Unique in the session; pairs the call with its result.
        arguments: The raw text the model wrote, JSON or not.
    """

    id: str
    name: str
    arguments: str


@record
class ToolResultBlock:
    """What the model is told a tool call gave."""

    call_id: str
    content: tuple["Content", ...]
    is_error: bool = False


@record
class Image:
    """A picture, base64 in `data`."""

    data: str
    mime_type: str


Content = Text | Reasoning | ToolCallBlock | ToolResultBlock | Image
Source = Mapping[str, Any]
"""Who sent a message: `{"kind": "user"}`, `{"kind": "plugin", "plugin": name}` …; lossless JSON."""

USER: Source = {"kind": "user"}


@record
class Message:
    """One entry of the conversation as the model sees it."""

    role: Role
    content: tuple[Content, ...]


def text_of(content: tuple[Content, ...]) -> str:
    """The text blocks of `content`, joined by nothing; other blocks are left out."""
    return "".join(block.text for block in content if isinstance(block, Text))


def content_to_json(content: tuple[Content, ...]) -> list[Json]:
    """Blocks as JSON values, losslessly; `content_from_json` is the way back."""
    return [_block_to_json(block) for block in content]


def content_from_json(values: list[Json]) -> tuple[Content, ...]:
    """Blocks from what `content_to_json` wrote.

    Raises:
        KeyError, TypeError, ValueError: The values were not written by this house.
    """
    return tuple(_block_from_json(value) for value in values)


def _block_to_json(block: Content) -> Json:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Reasoning(text, None):
            return {"type": "reasoning", "text": text}
        case Reasoning(text, opaque):
            return {"type": "reasoning", "text": text, "opaque": thaw_json(opaque)}
        case ToolCallBlock(call_id, name, arguments):
            return {"type": "tool-call", "id": call_id, "name": name, "arguments": arguments}
        case ToolResultBlock(call_id, content, is_error):
            return {
                "type": "tool-result",
                "callId": call_id,
                "content": content_to_json(content),
                "isError": is_error,
            }
        case Image(data, mime_type):
            return {"type": "image", "data": data, "mimeType": mime_type}
        case _:
            assert_never(block)


def _block_from_json(value: Json) -> Content:
    match value["type"]:
        case "text":
            return Text(value["text"])
        case "reasoning":
            return Reasoning(value["text"], value.get("opaque"))
        case "tool-call":
            return ToolCallBlock(value["id"], value["name"], value["arguments"])
        case "tool-result":
            return ToolResultBlock(value["callId"], content_from_json(value["content"]), value["isError"])
        case "image":
            return Image(value["data"], value["mimeType"])
        case other:
            raise ValueError(f"unknown content block type {other!r}")
