"""Says a request in the words of OpenAI's chat completions.

Pure: the same request gives the same bytes, and a longer conversation begins with the bytes of the
shorter one, so that the provider's prompt cache holds.

Rules.
1. Tool results stand right after the assistant message that asked; whatever came between waits.
2. A tool message is text alone: pictures in a result follow as the person's, once all results are through.
3. A model that sees no pictures is told that there was one: the session may have had another model before.
4. No content is ever left empty, and call arguments are always JSON: servers that check refuse the whole
   conversation otherwise, and so every later prompt of the session.
"""

from collections.abc import Sequence

from agent_loop.llm.provider import ModelRequest, ToolSchema
from agent_loop.llm.providers.bodies import NO_OUTPUT, arguments_out, body_bytes, picture_note
from agent_loop.messages import (
    Content,
    Image,
    Json,
    Message,
    Reasoning,
    Text,
    ToolCallBlock,
    ToolResultBlock,
    text_of,
)


def request_body(request: ModelRequest, *, returns_reasoning: bool) -> bytes:
    """The body of a streaming request.

    Args:
        returns_reasoning: Give the model back what it thought before it called tools; OpenAI refuses that.
    """
    body: Json = {"model": request.model, "stream": True, "stream_options": {"include_usage": True}}

    if request.thought is not None:
        body["reasoning_effort"] = request.thought

    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]

    # Last, so that what grows stands at the end.
    body["messages"] = messages_out(
        request.system,
        request.messages,
        returns_reasoning=returns_reasoning,
        pictures=request.info.images,
    )
    return body_bytes(body)


def messages_out(
    system: str, messages: Sequence[Message], *, returns_reasoning: bool, pictures: bool = True
) -> list[Json]:
    """The conversation, as a list of OpenAI messages.

    Args:
        pictures: Whether the model sees any.
    """
    out: list[Json] = [{"role": "system", "content": system}] if system else []
    # Calls whose results have not come yet, and what must wait until they have.
    owed: set[str] = set()
    later: list[tuple[Content, ...]] = []

    for message in messages:
        # Most messages of a long conversation are one text; the general way costs six times as much.
        if len(message.content) == 1 and not owed and type(block := message.content[0]) is Text:
            if block.text or message.role == "assistant":
                out.append({"role": message.role, "content": block.text})
            continue

        if message.role == "assistant":
            _say(out, later, pictures)
            out.append(_assistant(message.content, returns_reasoning=returns_reasoning))
            owed = {block.id for block in message.content if isinstance(block, ToolCallBlock)}
            continue

        for block in message.content:
            if isinstance(block, ToolResultBlock):
                out.append(_result(block))
                owed.discard(block.call_id)
                later.append(tuple(shown for shown in block.content if isinstance(shown, Image)))

        later.append(tuple(block for block in message.content if isinstance(block, Text | Image)))

        if not owed:
            _say(out, later, pictures)

    _say(out, later, pictures)
    return out


def _say(out: list[Json], later: list[tuple[Content, ...]], pictures: bool) -> None:
    """Append what waited, as the person's: a plain string where there is no picture, nothing for nothing."""
    for said in later:
        content: str | list[Json] = text_of(said)

        if any(isinstance(block, Image) for block in said):
            content = [part for block in said for part in _part(block, pictures)]

        if content:
            out.append({"role": "user", "content": content})

    later.clear()


def _part(block: Content, pictures: bool) -> list[Json]:
    match block:
        case Text(text) if text:
            return [{"type": "text", "text": text}]
        case Image(_, mime_type) if not pictures:
            return [{"type": "text", "text": picture_note(mime_type)}]
        case Image(data, mime_type):
            return [{"type": "image_url", "image_url": {"url": f"data:{mime_type};base64,{data}"}}]
        case _:
            return []


def _assistant(content: tuple[Content, ...], *, returns_reasoning: bool) -> Json:
    calls = [_call(block) for block in content if isinstance(block, ToolCallBlock)]
    text = text_of(content)

    if not calls:
        return {"role": "assistant", "content": text}

    message: Json = {"role": "assistant", "content": text or None, "tool_calls": calls}

    if returns_reasoning:
        thoughts = [block for block in content if isinstance(block, Reasoning)]

        if reasoning := "".join(block.text for block in thoughts):
            message["reasoning_content"] = reasoning

        if details := [piece for block in thoughts for piece in _details(block)]:
            message["reasoning_details"] = details

    return message


def _details(thought: Reasoning) -> Sequence[Json]:
    """What a gateway wants back of a thought, unread."""
    match thought.opaque:
        case {"reasoning_details": [*details]}:
            return details
        case _:
            return ()


def _call(call: ToolCallBlock) -> Json:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments_out(call.arguments, must_be_object=False)},
    }


def _result(result: ToolResultBlock) -> Json:
    text = text_of(result.content)
    return {"role": "tool", "tool_call_id": result.call_id, "content": text if text.strip() else NO_OUTPUT}


def _tool(tool: ToolSchema) -> Json:
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
    }
