"""A model's endpoint on loopback: real HTTP, planned answers, every way of failing that endpoints have.

Owns sockets, HTTP/1.1 and what a client did to them. What the events say, and whether a conversation is
one that the real endpoint takes, belongs to a wire double such as `openai_wire` or `anthropic_wire`.

1. Each request takes the next reply of the plan; a request without one is answered 500, so that a test
   which asks too often fails.
2. A client that hangs up is noticed at once, also while the server is silent.
3. The question which models there are is no part of the plan: whoever warms a provider up asks it, sometime.
4. Nothing sleeps unless a plan says `pace_s`; to stop a client in the middle, plan silence.
"""

from __future__ import annotations

import json
import socket
import struct
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

import anyio
from anyio.abc import ByteStream, SocketAttribute

WAIT_S = 1.0


@dataclass(frozen=True)
class Reply:
    """One planned answer.

    Attributes:
        events: Server-sent events, each as its lines without the blank line that ends it.
        body: Sent instead of events.
        split: Sizes of the writes, over and over; empty for one write per event.
        line_end: What ends a line of an event.
        chunked: With chunked transfer encoding, or with the end of the connection as the end of the body.
        cut_after: Events before the connection ends; None for an answer with an end.
        reset: Whether a cut is a reset, as after a crash; what was sent last may be lost with it.
        silent_after: Events before the server says nothing more, until the client is gone.
        pace_s: Pause between two writes, in seconds.
    """

    events: Sequence[bytes] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    split: Sequence[int] = ()
    line_end: bytes = b"\n"
    chunked: bool = True
    cut_after: int | None = None
    reset: bool = False
    silent_after: int | None = None
    pace_s: float = 0.0


@dataclass(frozen=True)
class Request:
    """What a client asked; `body` is the value of `raw`, None of nothing."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Any


class ProviderServer:
    """The running server; `requests`, `questions` and `connections` tell what clients did.

    Attributes:
        listing: Answers each question which models there are.
        questions: Those questions.
    """

    def __init__(self, port: int, problem: Callable[[Any], str | None]) -> None:
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self.requests: list[Request] = []
        self.questions: list[Request] = []
        self.listing = Reply(status=404, body=b"{}")
        self.connections = 0
        self._problem = problem
        self._replies: deque[Reply] = deque()
        self._gone = anyio.Event()

    def plan(self, *replies: Reply) -> None:
        """Answer the next requests like this, after those planned before."""
        self._replies.extend(replies)

    async def client_gone(self) -> None:
        """Wait until a client hung up in the middle of an answer.

        Raises:
            TimeoutError: None did within WAIT_S.
        """
        with anyio.fail_after(WAIT_S):
            await self._gone.wait()

        self._gone = anyio.Event()

    async def serve(self, stream: ByteStream) -> None:
        """Answer one connection until either side ends it."""
        self.connections += 1
        reader = _Reader(stream)

        async with stream:
            try:
                while await self._answer(stream, reader):
                    pass
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                return

    async def _answer(self, stream: ByteStream, reader: _Reader) -> bool:
        """Read a request and answer it; returns whether the connection may be used again."""
        request = await reader.request()
        asks_for_models = request.body is None
        (self.questions if asks_for_models else self.requests).append(request)
        reply = self.listing if asks_for_models else self._reply(request)
        keep = True

        async with anyio.create_task_group() as group:
            group.start_soon(self._watch, reader, group.cancel_scope)
            try:
                keep = await _send(stream, reply)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                self._gone.set()
                keep = False
            # Only a hung-up client ends a silence, so this is reached when the reply is complete or cut.
            group.cancel_scope.cancel()

        return keep

    def _reply(self, request: Request) -> Reply:
        reply = self._replies.popleft() if self._replies else None

        if reply is None:
            return Reply(status=500, body=b'{"error": {"message": "the test has planned no reply"}}')

        if request.body is not None and (problem := self._problem(request.body)):
            error = {"message": problem, "type": "invalid_request_error"}
            return Reply(status=400, body=json.dumps({"error": error}).encode())

        return reply

    async def _watch(self, reader: _Reader, answering: anyio.CancelScope) -> None:
        """Notice a client that hangs up while it is being answered."""
        try:
            await reader.more()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            self._gone.set()
            answering.cancel()


@asynccontextmanager
async def provider_server(
    problem: Callable[[Any], str | None] = lambda _: None,
) -> AsyncIterator[ProviderServer]:
    """A server on a free loopback port.

    Args:
        problem: What is wrong with a request's body, in the endpoint's words; such a request gets 400.
    """
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        server = ProviderServer(listener.extra(SocketAttribute.local_port), problem)

        async with anyio.create_task_group() as group:
            group.start_soon(listener.serve, server.serve)
            yield server
            group.cancel_scope.cancel()


def closed_port() -> int:
    """A loopback port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class _Reader:
    """Reads requests; bytes that come early are kept for the next one."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._bytes = b""

    async def more(self) -> None:
        self._bytes += await self._stream.receive()

    async def request(self) -> Request:
        while b"\r\n\r\n" not in self._bytes:
            await self.more()

        head, _, self._bytes = self._bytes.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", "0"))

        while len(self._bytes) < length:
            await self.more()

        body, self._bytes = self._bytes[:length], self._bytes[length:]
        return Request(first.split(" ")[1], headers, body, json.loads(body) if body else None)


async def _send(stream: ByteStream, reply: Reply) -> bool:
    """Send one reply; returns whether the connection may be used again."""
    if reply.body is not None:
        length = str(len(reply.body))
        kind = {"content-type": "application/json", "content-length": length}
        await stream.send(_head(reply.status, {**kind, **reply.headers}) + reply.body)
        return True

    kind = {"content-type": "text/event-stream"}
    framing = {"transfer-encoding": "chunked"} if reply.chunked else {"connection": "close"}
    await stream.send(_head(reply.status, {**kind, **framing, **reply.headers}))

    ends = [end for end in (reply.cut_after, reply.silent_after) if end is not None]
    events = reply.events[: min(ends)] if ends else reply.events

    for piece in _pieces(events, reply):
        await stream.send(b"%x\r\n%b\r\n" % (len(piece), piece) if reply.chunked else piece)
        await anyio.sleep(reply.pace_s)

    if reply.silent_after is not None:
        await anyio.sleep_forever()

    if reply.cut_after is not None:
        if reply.reset:
            _reset_when_closed(stream)
        return False

    if reply.chunked:
        await stream.send(b"0\r\n\r\n")

    return reply.chunked


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} Planned", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _pieces(events: Sequence[bytes], reply: Reply) -> Iterator[bytes]:
    whole = [event.replace(b"\n", reply.line_end) + reply.line_end * 2 for event in events]

    if not reply.split:
        yield from whole
        return

    rest = b"".join(whole)
    for size in cycle(reply.split):
        if not rest:
            return
        yield rest[:size]
        rest = rest[size:]


def _reset_when_closed(stream: ByteStream) -> None:
    raw = stream.extra(SocketAttribute.raw_socket)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
