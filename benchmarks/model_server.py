"""A model server on loopback: answers in OpenAI's and Anthropic's events, fast enough never to be waited for.

Answers what the last message asks: `bench deltas=N pause_ms=M`. `GET …/first` says when the first delta of
the newest answer was written, by the machine's monotonic clock in seconds. Prints its port, and leaves when
stdin closes. HTTP is read just well enough for a client that sends a length with its body.
"""

import asyncio
import sys
import time
from typing import Final, NamedTuple

EVENTS_PER_WRITE: Final = 64
ASKED: Final = b"bench deltas="

_HEADERS: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


class Format(NamedTuple):
    """How one format says an answer; `event` takes a delta's number, `last` how many there were."""

    first: bytes
    event: bytes
    last: bytes


_OPENAI: Final = Format(
    b"",
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"bench",'
    b'"choices":[{"index":0,"delta":{"content":"%07d "},"finish_reason":null}]}\n\n',
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"bench",'
    b'"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"bench",'
    b'"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":%d,"total_tokens":1}}\n\n'
    b"data: [DONE]\n\n",
)
_ANTHROPIC: Final = Format(
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message",'
    b'"role":"assistant","model":"bench","content":[],"stop_reason":null,"stop_sequence":null,'
    b'"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"text","text":""}}\n\n'
    b'event: ping\ndata: {"type": "ping"}\n\n',
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
    b'"delta":{"type":"text_delta","text":"%07d "}}\n\n',
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn",'
    b'"stop_sequence":null},"usage":{"output_tokens":%d}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
)
FORMATS: Final = {b"/chat/completions": _OPENAI, b"/v1/messages": _ANTHROPIC}
"""The format by the end of the path."""

FIRST: Final = b"/first"

_NOT_FOUND: Final = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


class Connection(asyncio.Protocol):
    """One connection, kept between requests.

    Attributes:
        first_at: When one of them last wrote a first delta.
    """

    first_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = bytearray()
        self._room = asyncio.Event()
        self._room.set()
        self._answering: asyncio.Task[None] | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answering is not None:
            self._answering.cancel()

    def pause_writing(self) -> None:
        self._room.clear()

    def resume_writing(self) -> None:
        self._room.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._buffer[:head_end])
        size = next(
            (
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            ),
            0,
        )
        end = head_end + 4 + size
        if len(self._buffer) < end:
            return
        body = bytes(self._buffer[head_end + 4 : end])
        del self._buffer[:end]
        asked = body.rfind(ASKED)
        method, path, _ = head.split(b"\r\n")[0].split(b" ")
        said = next((said for end, said in FORMATS.items() if path.endswith(end)), None)
        if path.endswith(FIRST):
            at = b"%.9f" % Connection.first_at
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(at), at))
            return
        if method != b"POST" or said is None or asked < 0:
            self._transport.write(_NOT_FOUND)
            return
        words = body[asked : body.index(b'"', asked)].split()[1:]
        plan = {name: float(value) for name, _, value in (word.decode().partition("=") for word in words)}
        answer = self._answer(said, int(plan["deltas"]), plan["pause_ms"] / 1000)
        self._answering = asyncio.get_running_loop().create_task(answer)

    async def _answer(self, said: Format, deltas: int, pause_s: float) -> None:
        self._transport.write(_HEADERS)
        if said.first:
            self._chunk(said.first)
        Connection.first_at = time.monotonic()
        if pause_s:
            await self._paced(said.event, deltas, pause_s)
        else:
            for first in range(0, deltas, EVENTS_PER_WRITE):
                self._chunk(
                    b"".join(said.event % at for at in range(first, min(first + EVENTS_PER_WRITE, deltas)))
                )
                await asyncio.sleep(0)
                await self._room.wait()
        self._chunk(said.last % deltas)
        self._transport.write(b"0\r\n\r\n")

    async def _paced(self, event: bytes, deltas: int, pause_s: float) -> None:
        """Paced against the clock, so that a late timer does not slow the whole stream."""
        clock = asyncio.get_running_loop().time
        due = clock()
        for at in range(deltas):
            self._chunk(event % at)
            due += pause_s
            await asyncio.sleep(max(0.0, due - clock()))

    def _chunk(self, data: bytes) -> None:
        self._transport.write(b"%x\r\n%b\r\n" % (len(data), data))


async def main() -> None:
    """Serve until stdin closes."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    left = asyncio.Event()
    loop.add_reader(sys.stdin, left.set)
    await left.wait()


asyncio.run(main())
