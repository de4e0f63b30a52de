"""What waits for the agent: queued messages (a turn each batch) and steering (the running turn)."""

from collections import deque

import anyio

from agent_loop.messages import Content, Source
from agent_loop.record import record


@record
class Waiting:
    """A message on its way in; `id` is what `send` or `steer` returned."""

    id: str
    content: tuple[Content, ...]
    source: Source


class Inbox:
    """Two FIFOs and one sleeper: the driver."""

    def __init__(self) -> None:
        self._queued: deque[Waiting] = deque()
        self._steering: deque[Waiting] = deque()
        self._wake = anyio.Event()
        self._closed = False

    @property
    def queued(self) -> int:
        """How many messages wait for a turn."""
        return len(self._queued)

    @property
    def steering(self) -> int:
        """How many messages wait for the running turn."""
        return len(self._steering)

    def put_queued(self, message: Waiting) -> None:
        """Queue for a turn and wake the driver."""
        self._queued.append(message)
        self._wake.set()

    def put_steering(self, message: Waiting) -> None:
        """Queue for the running turn; wakes nobody."""
        self._steering.append(message)

    def take_queued(self) -> tuple[Waiting, ...]:
        """All that is queued, in order; the queue is empty afterwards."""
        taken = tuple(self._queued)
        self._queued.clear()
        return taken

    def next_steering(self) -> Waiting | None:
        """The oldest steering message, taken out; None when there is none."""
        return self._steering.popleft() if self._steering else None

    def requeue_steering(self) -> None:
        """Steering nobody took becomes queued messages, in order, behind what is queued already."""
        self._queued.extend(self._steering)
        self._steering.clear()

    def clear(self) -> tuple[str, ...]:
        """Drop everything; the ids of what was dropped."""
        dropped = tuple(message.id for message in (*self._queued, *self._steering))
        self._queued.clear()
        self._steering.clear()
        return dropped

    def close(self) -> None:
        """Let the driver go; `wait` returns from now on at once."""
        self._closed = True
        self._wake.set()

    async def wait(self) -> None:
        """Sleep until something is queued, was queued since the last wait, or the inbox is closed."""
        if not self._queued and not self._closed:
            await self._wake.wait()
        if not self._closed:
            self._wake = anyio.Event()
