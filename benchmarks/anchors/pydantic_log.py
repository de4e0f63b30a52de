"""Anchor: a log of one row per event, rebuilt by pydantic: each row becomes a model of a closed union.

    pydantic_log.py ROWS

Reads and parses; shows nothing. Prints how many events there are, and the wall and CPU seconds they took.
"""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

Kind = TypeVar("Kind")
Data = TypeVar("Data")


class Model(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)


class Delta(Model):
    type: Literal["text-delta", "reasoning-delta"]
    index: int
    text: str


class CallDelta(Model):
    type: Literal["tool-call-delta"]
    index: int
    id: str
    name: str
    arguments: str


class BlockStart(Model):
    type: Literal["block-start"]
    index: int
    kind: Literal["text", "reasoning", "tool-call"]


class BlockEnd(Model):
    type: Literal["block-end"]
    index: int


class Tokens(Model):
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int


class UsageChunk(Model):
    type: Literal["usage"]
    usage: Tokens


class Finish(Model):
    type: Literal["finish"]
    kind: Literal["stop", "tool-calls"]


Chunk = Annotated[
    Delta | CallDelta | BlockStart | BlockEnd | UsageChunk | Finish, Field(discriminator="type")
]


class Words(Model):
    type: Literal["text", "reasoning"]
    text: str


class Call(Model):
    type: Literal["tool-call"]
    id: str
    name: str
    arguments: str


Content = Annotated[Words | Call, Field(discriminator="type")]


class Source(Model):
    kind: str


class Trigger(Model):
    kind: Literal["message", "injection"]
    source: Source


class Code(Model):
    type: Literal["code"]
    text: str
    language: str


class Diff(Model):
    type: Literal["diff"]
    path: str
    old: str | None
    new: str


class Output(Model):
    type: Literal["output"]
    text: str
    truncated: bool


class Location(Model):
    path: str
    line: int | None


class Card(Model):
    kind: str
    title: str
    status: Literal["pending", "done"]
    body: list[Annotated[Code | Diff | Output, Field(discriminator="type")]] = []
    locations: list[Location] = []
    input: Any = None


class Exit(Model):
    code: int | None
    signal: str | None
    timed_out: bool


class InTurn(Model):
    turn: int


class InStep(InTurn):
    step: int


class TurnStartData(InTurn):
    trigger: Trigger
    message_ids: list[str]


class Reason(Model):
    kind: Literal["completed"]


class TurnEndData(InTurn):
    reason: Reason


class UserMessageData(InTurn):
    id: str
    content: list[Content]
    source: Source


class ChunkData(InStep):
    attempt: int
    chunk: Chunk


class MessageData(InStep):
    attempt: int
    content: list[Content]
    interrupted: bool


class UsageData(InStep):
    usage: Tokens


class OfCall(InStep):
    call_id: str


class ToolCallData(OfCall):
    name: str
    arguments: str
    card: Card | None


class AskedData(OfCall):
    options: list[str]


class DecidedData(OfCall):
    allowed: bool
    by: str
    option: str | None


class ToolResultData(OfCall):
    content: list[Content]
    is_error: bool
    outcome: Literal["ran"]
    card: Card | None
    exit: Exit | None = None


class TitleData(Model):
    title: str
    by: Literal["prompt", "user"]


class Row(Model, Generic[Kind, Data]):
    seq: int
    time: int
    type: Kind
    data: Data


Event = Annotated[
    Row[Literal["turn/start"], TurnStartData]
    | Row[Literal["turn/end"], TurnEndData]
    | Row[Literal["step/start", "step/end"], InStep]
    | Row[Literal["user/message"], UserMessageData]
    | Row[Literal["assistant/chunk"], ChunkData]
    | Row[Literal["assistant/message"], MessageData]
    | Row[Literal["usage"], UsageData]
    | Row[Literal["tool/call"], ToolCallData]
    | Row[Literal["tool/started"], OfCall]
    | Row[Literal["permission/asked"], AskedData]
    | Row[Literal["permission/decided"], DecidedData]
    | Row[Literal["tool/result"], ToolResultData]
    | Row[Literal["session/title"], TitleData],
    Field(discriminator="type"),
]


def main(path: Path) -> None:
    """Rebuild the log once."""
    parse = TypeAdapter[Any](Event).validate_json
    began, cpu = time.perf_counter(), time.process_time()
    log = [parse(line) for line in path.read_bytes().splitlines()]
    wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
    print(json.dumps({"events": len(log), "wall_s": wall_s, "cpu_s": cpu_s}))


main(Path(sys.argv[1]))
