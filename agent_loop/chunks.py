"""The pieces a model's answer arrives in, whichever provider sent them.

Order within one answer: blocks open, grow and end in any interleaving told apart by `index`;
then at most one `UsageChunk`; then one `Finish`, after which nothing follows. Facts carry these,
so they stand below every room; folding them into a message belongs to `llm.collect`.
"""

from typing import Any, Literal

from agent_loop.errors import ErrorKind
from agent_loop.messages import Content
from agent_loop.record import record

BlockKind = Literal["text", "reasoning", "tool-call"]
FinishKind = Literal["stop", "tool-calls", "max-tokens", "refusal", "aborted", "error"]


@record
class TextDelta:
    """More text of block `index`; opens the block when nothing did."""

    index: int
    text: str


@record
class ReasoningDelta:
    """More reasoning of block `index`; opens the block when nothing did."""

    index: int
    text: str


@record
class ToolCallDelta:
    """More of a tool call: its id and name once, its raw arguments in pieces.

    An empty `id` or `name` means "as before, or not known yet".
    """

    index: int
    id: str
    name: str
    arguments: str


@record
class BlockStart:
    """Opens block `index`."""

    index: int
    kind: BlockKind


@record
class BlockEnd:
    """Ends block `index`.

    Attributes:
        block: Its authoritative content, when given.
        opaque: What the provider wants back with the reasoning that its deltas said (`Reasoning.opaque`).
    """

    index: int
    block: Content | None = None
    opaque: Any = None


@record
class Usage:
    """Tokens of one model call; the counts are disjoint.

    Attributes:
        input_tokens: Read afresh, without what came from a cache.
        reasoning_tokens: Written as reasoning and not counted in `output_tokens`.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0


@record
class UsageChunk:
    """What the call cost; the last one counts."""

    usage: Usage


@record
class Finish:
    """Why the answer ended. With kind `error`, `error_kind` and `message` say what failed."""

    kind: FinishKind
    message: str = ""
    error_kind: ErrorKind = "unknown"


Chunk = TextDelta | ReasoningDelta | ToolCallDelta | BlockStart | BlockEnd | UsageChunk | Finish
