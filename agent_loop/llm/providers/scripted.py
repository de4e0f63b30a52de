"""A provider that says what a script says: for tests and goldens. It is not a language model.

The script is a file of JSON lines, one per model call:

    {"session": 1, "expect": {"last_user": "…", "tools": ["read"], "model": "…", "pictures": 1},
     "do": [{"think": "…"}, {"text": "…"}, {"tool": "read", "id": "c1", "args": {…}},
            {"tool": "write", "id": "c2", "args_raw": "{bad"}, {"usage": {"in": 10, "out": 2}},
            {"hold": "go"}, {"raise": {"kind": "rate_limit", "message": "…"}}, {"hang": true},
            {"finish": "stop"}]}

`session` is the nth session that called. With `control = "host:port"`, whoever listens there hands
out lines and releases holds (newline-delimited JSON: `begin`, `hold`, `hang`, `end`, `unexpected`
from here; `take`, `refuse`, `release` to here). A missing finish, a failed expect, an exhausted
script fail loudly, as the provider error `invalid_request`.
"""

import json
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import anyio
from anyio import to_thread
from anyio.abc import SocketStream

from agent_loop.chunks import (
    BlockEnd,
    BlockStart,
    Chunk,
    Finish,
    FinishKind,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    Usage,
    UsageChunk,
)
from agent_loop.errors import ERROR_KINDS, ProviderError
from agent_loop.llm.provider import ModelRequest
from agent_loop.messages import Content, Image, ToolResultBlock, text_of

CONTROL_GRACE_S: Final = 5.0
_FINISH: Final[dict[str, FinishKind]] = {
    "stop": "stop",
    "tool_calls": "tool-calls",
    "max_tokens": "max-tokens",
    "refusal": "refusal",
}


class Scripted:
    """The scripted provider.

    Attributes:
        name: As configured, usually `scripted`.
    """

    def __init__(self, name: str, script: str, control: str | None = None) -> None:
        """Take the script's path, read at the first call, and `host:port` of whoever directs, if anybody."""
        self.name = name
        self._path = script
        self._lines: list[dict[str, Any]] = []
        self._loaded = False
        self._loading = anyio.Lock()
        self._director: _Director = _Alone(self._lines) if control is None else _Directed(control)

    async def load(self) -> None:
        """Read the script.

        Raises:
            ProviderError: It cannot be read; the message says where.
        """
        if self._loaded:
            return
        async with self._loading:
            if not self._loaded:
                self._lines.extend(await to_thread.run_sync(_read_script, self._path))
                self._loaded = True

    async def models(self) -> tuple[str, ...]:
        """It has no list: it answers to any name."""
        return ()

    async def aclose(self) -> None:
        """Let go of the control connection."""
        await self._director.aclose()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Chunk, None]:
        """Perform the next line of the calling session's script."""
        await self.load()
        director = self._director
        call = await director.begin(request.session_id)
        try:
            line = self._lines[await director.line(call)]
            try:
                items = _checked(line, request)
            except ProviderError as error:
                await director.tell(call, "unexpected", message=str(error))
                raise
            performance = _Performance()
            for item in items:
                if "hold" in item:
                    await director.hold(call, item["hold"])
                elif "hang" in item:
                    await director.tell(call, "hang")
                    await anyio.sleep_forever()
                else:
                    for chunk in performance.chunks(item):
                        yield chunk
            performance.require_finish()
        finally:
            with anyio.move_on_after(CONTROL_GRACE_S, shield=True):
                await director.tell(call, "end")


class _Director(Protocol):
    """Who says which line a call performs, and when it goes on."""

    async def begin(self, session_id: str) -> int: ...

    async def line(self, call: int) -> int: ...

    async def hold(self, call: int, name: str) -> None: ...

    async def tell(self, call: int, event: str, **data: Any) -> None: ...

    async def aclose(self) -> None: ...


class _Alone:
    """Nobody directs: each session takes its next unused line; a hold has nobody to release it."""

    def __init__(self, lines: list[dict[str, Any]]) -> None:
        self._lines = lines
        self._used: set[int] = set()
        self._sessions: list[str] = []
        self._calls: list[str] = []

    async def begin(self, session_id: str) -> int:
        if session_id not in self._sessions:
            self._sessions.append(session_id)
        self._calls.append(session_id)
        return len(self._calls) - 1

    async def line(self, call: int) -> int:
        number = self._sessions.index(self._calls[call]) + 1
        for at, line in enumerate(self._lines):
            if at not in self._used and line.get("session", 1) == number:
                self._used.add(at)
                return at
        raise _fault(f"the script has no line left for session {number}")

    async def hold(self, call: int, name: str) -> None:
        raise _fault(f"nobody can release the hold {name!r}: no control is set")

    async def tell(self, call: int, event: str, **data: Any) -> None:
        pass

    async def aclose(self) -> None:
        pass


class _Directed:
    """Asks whoever listens on the control socket; one connection, opened by the first call."""

    def __init__(self, address: str) -> None:
        self._host, _, self._port = address.rpartition(":")
        self._stream: SocketStream | None = None
        self._connecting = anyio.Lock()
        self._reading = anyio.Lock()
        self._buffer = b""
        self._next_call = 1
        self._answers: dict[int, list[dict[str, Any]]] = {}

    async def begin(self, session_id: str) -> int:
        call, self._next_call = self._next_call, self._next_call + 1
        self._answers[call] = []
        async with self._connecting:
            if self._stream is None:
                self._stream = await anyio.connect_tcp(self._host, int(self._port))
        await self.tell(call, "begin", session=session_id)
        return call

    async def line(self, call: int) -> int:
        answer = await self._answer(call)
        if "refuse" in answer:
            raise _fault(str(answer["refuse"]))
        return int(answer["take"])

    async def hold(self, call: int, name: str) -> None:
        await self.tell(call, "hold", name=name)
        while (await self._answer(call)).get("release") != name:
            pass

    async def tell(self, call: int, event: str, **data: Any) -> None:
        if self._stream is not None:
            await self._stream.send(json.dumps({"event": event, "call": call, **data}).encode() + b"\n")

    async def aclose(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()

    async def _answer(self, call: int) -> dict[str, Any]:
        """The next message for `call`; whoever waits reads for everybody."""
        assert self._stream is not None
        while True:
            async with self._reading:
                if self._answers[call]:
                    return self._answers[call].pop(0)
                while b"\n" not in self._buffer:
                    self._buffer += await self._stream.receive()
                line, _, self._buffer = self._buffer.partition(b"\n")
                message = json.loads(line)
                self._answers.setdefault(message["call"], []).append(message)


class _Performance:
    """Turns script items into chunks; neighbouring items of one kind are deltas of one block."""

    def __init__(self) -> None:
        self._index = -1
        self._open: str | None = None
        self._finished = False

    def chunks(self, item: dict[str, Any]) -> Sequence[Chunk]:
        """The chunks of one item.

        Raises:
            ProviderError: The item says so, or is none.
        """
        if "text" in item:
            began = self._begin("text")
            return (*began, TextDelta(self._index, item["text"]))
        if "think" in item:
            began = self._begin("reasoning")
            return (*began, ReasoningDelta(self._index, item["think"]))
        if "tool" in item:
            ended = self._end()
            self._index += 1
            arguments = item["args_raw"] if "args_raw" in item else json.dumps(item.get("args", {}))
            return (
                *ended,
                BlockStart(self._index, "tool-call"),
                ToolCallDelta(self._index, item.get("id", ""), item["tool"], arguments),
                BlockEnd(self._index),
            )
        if "usage" in item:
            return (*self._end(), UsageChunk(Usage(item["usage"].get("in", 0), item["usage"].get("out", 0))))
        if "finish" in item:
            self._finished = True
            return (*self._end(), Finish(_FINISH[item["finish"]]))
        raise _raised(item.get("raise"), item)

    def require_finish(self) -> None:
        """Raises ProviderError when the line ended without `finish`."""
        if not self._finished:
            raise _fault("a script line ended without a finish")

    def _begin(self, kind: Literal["text", "reasoning"]) -> Sequence[Chunk]:
        if self._open == kind:
            return ()
        ended = self._end()
        self._index += 1
        self._open = kind
        return (*ended, BlockStart(self._index, kind))

    def _end(self) -> Sequence[Chunk]:
        if self._open is None:
            return ()
        self._open = None
        return (BlockEnd(self._index),)


def _checked(line: dict[str, Any], request: ModelRequest) -> list[dict[str, Any]]:
    """The line's items, once what it expects of the request holds."""
    expect = line.get("expect", {})
    said = next((text_of(m.content) for m in reversed(request.messages) if text_of(m.content)), "")
    if "last_user" in expect and expect["last_user"] != said:
        raise _fault(f"expected the last text to be {expect['last_user']!r}, not {said!r}")
    names = {tool.name for tool in request.tools}
    if missing := [name for name in expect.get("tools", ()) if name not in names]:
        raise _fault(f"expected the tools {missing}, but the request has {sorted(names)}")
    if "model" in expect and expect["model"] != request.model:
        raise _fault(f"expected the model {expect['model']!r}, not {request.model!r}")
    if "pictures" in expect:
        pictures = sum(_pictures(message.content) for message in request.messages)
        if expect["pictures"] != pictures:
            raise _fault(f"expected {expect['pictures']} pictures, but the request has {pictures}")
    items = line.get("do")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise _fault("a script line must have a list `do`")
    return items


def _raised(error: Any, item: dict[str, Any]) -> ProviderError:
    if not isinstance(error, dict) or error.get("kind") not in ERROR_KINDS:
        return _fault(f"no such script item: {item}")
    return ProviderError(
        error["kind"],
        str(error.get("message", "")),
        provider="scripted",
        status=error.get("status"),
        retry_after_s=error.get("retryAfter"),
    )


def _read_script(path: str) -> list[dict[str, Any]]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise _fault(f"the script {path} cannot be read: {error}") from error


def _fault(message: str) -> ProviderError:
    return ProviderError("invalid_request", f"scripted model: {message}", provider="scripted")


def _pictures(content: Sequence[Content]) -> int:
    """How many there are, those that tools gave among them."""
    return sum(
        _pictures(block.content) if isinstance(block, ToolResultBlock) else isinstance(block, Image)
        for block in content
    )
