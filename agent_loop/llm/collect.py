"""Folds the chunks of one answer into content blocks.

Owns what counts when a provider's stream is untidy, and the ids that tool calls carry from here on.
What to do with a cut or refused answer belongs to the loop.

Rules.
1. A block opens with its first chunk, start or delta; a second start changes nothing.
2. A delta of another kind than its block, or for an ended block, is dropped.
3. The first end that carries a block is authoritative, whatever the deltas said.
4. Blocks stand in the order they opened in; the last usage and the last finish count.
5. The first use of a tool-call id in a session keeps the provider's text; a repeat gets `-2`, `-3` …
"""

from collections.abc import Set as AbstractSet
from typing import Any

from agent_loop.chunks import (
    BlockEnd,
    BlockKind,
    BlockStart,
    Chunk,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from agent_loop.messages import Content, Reasoning, Text, ToolCallBlock


class Collector:
    """Collects one answer; ask it at any point, also after a stream that broke off.

    Attributes:
        usage: The last usage seen; None until then.
        finish: The last finish seen; None means that the stream was cut.
        shown: Whether any text or reasoning came, so that a person may have read some of it.
    """

    def __init__(self, taken_ids: AbstractSet[str] = frozenset()) -> None:
        """Start an empty answer.

        Args:
            taken_ids: Tool-call ids used earlier in the session; only read, when content is asked for.
        """
        self.usage: Usage | None = None
        self.finish: Finish | None = None
        self.shown = False
        self._taken_ids = taken_ids
        self._blocks: dict[int, _Block] = {}

    def add(self, chunk: Chunk) -> None:
        """Take the next chunk."""
        # Called for every delta, so the usual comes first and no pattern is matched.
        if isinstance(chunk, TextDelta):
            self._grow(chunk.index, "text", chunk.text)
        elif isinstance(chunk, ReasoningDelta):
            self._grow(chunk.index, "reasoning", chunk.text)
        elif isinstance(chunk, ToolCallDelta):
            self._grow_call(chunk)
        elif isinstance(chunk, UsageChunk):
            self.usage = chunk.usage
        elif isinstance(chunk, Finish):
            self.finish = chunk
        elif isinstance(chunk, BlockStart):
            self._block(chunk.index, chunk.kind)
        else:
            self._end(chunk)

    def content(self) -> tuple[Content, ...]:
        """All blocks so far, without empty text and reasoning; tool-call ids are unique in the session."""
        used: set[str] = set()
        content: list[Content] = []

        for index, block in self._blocks.items():
            found = block.content()

            if isinstance(found, ToolCallBlock):
                call_id = self._unique(found.id or f"call-{index}", used)
                used.add(call_id)
                content.append(ToolCallBlock(call_id, found.name, found.arguments))
            elif not _is_empty(found):
                content.append(found)

        return tuple(content)

    def without_tool_calls(self) -> tuple[Content, ...]:
        """`content()`, less the tool calls."""
        return tuple(block for block in self.content() if not isinstance(block, ToolCallBlock))

    def visible_prefix(self) -> tuple[Content, ...]:
        """What of a cancelled answer is worth keeping: text and reasoning that is not blank."""
        return tuple(
            block for block in self.content() if isinstance(block, (Text, Reasoning)) and block.text.strip()
        )

    def _grow(self, index: int, kind: BlockKind, text: str) -> None:
        block = self._blocks.get(index) or self._block(index, kind)

        if text:
            self.shown = True

        if block.kind == kind and not block.ended:
            block.pieces.append(text)

    def _grow_call(self, delta: ToolCallDelta) -> None:
        block = self._block(delta.index, "tool-call")

        if block.kind != "tool-call" or block.ended:
            return

        block.id = block.id or delta.id
        block.name = block.name or delta.name
        block.pieces.append(delta.arguments)

    def _block(self, index: int, kind: BlockKind) -> "_Block":
        """The block at `index`, opened now when nothing did; then it is of that kind for good."""
        block = self._blocks.get(index)

        if block is None:
            block = self._blocks[index] = _Block(kind)

        return block

    def _end(self, end: BlockEnd) -> None:
        block = self._blocks.get(end.index)

        if block is None:
            if end.block is None:
                return
            # The kind of a block that ended as it opened is never asked for.
            block = self._blocks[end.index] = _Block("text")

        if not block.ended:
            block.opaque = end.opaque

        block.ended = True
        block.final = block.final or end.block

    def _unique(self, wanted: str, used: set[str]) -> str:
        call_id, repeat = wanted, 1

        while call_id in self._taken_ids or call_id in used:
            repeat += 1
            call_id = f"{wanted}-{repeat}"

        return call_id


class _Block:
    """One block while it grows."""

    __slots__ = ("ended", "final", "id", "kind", "name", "opaque", "pieces")

    def __init__(self, kind: BlockKind) -> None:
        self.kind = kind
        self.pieces: list[str] = []
        self.id = ""
        self.name = ""
        self.ended = False
        self.opaque: Any = None
        self.final: Content | None = None

    def content(self) -> Content:
        if self.final is not None:
            return self.final

        joined = "".join(self.pieces)

        if self.kind == "tool-call":
            return ToolCallBlock(self.id, self.name, joined)

        return Text(joined) if self.kind == "text" else Reasoning(joined, self.opaque)


def _is_empty(block: Content) -> bool:
    """Whether a block says nothing; reasoning without words may still carry what the provider wants back."""
    match block:
        case Text(text):
            return not text
        case Reasoning(text, opaque):
            return not text and opaque is None
        case _:
            return False
