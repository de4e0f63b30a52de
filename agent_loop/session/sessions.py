"""Sessions that live in this process, by id."""

from collections.abc import Iterator, Sequence
from typing import Any

from agent_loop.clock import Clock, wall_clock
from agent_loop.errors import Duplicate
from agent_loop.events.bus import Bus, Disposer
from agent_loop.events.facts import LogRow
from agent_loop.events.moments import SessionCreated
from agent_loop.messages import Message
from agent_loop.session.header import SessionHeader
from agent_loop.session.history import History
from agent_loop.session.log import SessionLog


class Session:
    """One conversation.

    Attributes:
        state: Whatever tools remember while the session lives in memory, keyed by tool.
    """

    def __init__(
        self, header: SessionHeader, seed: Sequence[LogRow] = (), *, clock: Clock = wall_clock
    ) -> None:
        self.header = header
        self.log = SessionLog(seed, clock=clock)
        self.state: dict[str, Any] = {}
        self._history = History()
        self._folded_to = 0

    @property
    def id(self) -> str:
        """The session's id, the same in memory, on disk and on the wire."""
        return self.header.id

    def messages(self) -> tuple[Message, ...]:
        """The conversation as the model sees it, up to the newest fact."""
        self._history.fold(self.log.rows_since(self._folded_to))
        self._folded_to = self.log.next_seq
        return self._history.messages()


class Sessions:
    """The store of live sessions; iterating gives them in order of creation."""

    def __init__(self, bus: Bus, *, clock: Clock = wall_clock) -> None:
        self._bus = bus
        self._clock = clock
        self._by_id: dict[str, Session] = {}

    def create(self, header: SessionHeader, seed: Sequence[LogRow] = ()) -> tuple[Session, Disposer]:
        """Add a session and announce it; the disposer takes exactly this one out again.

        Raises:
            Duplicate: The id is live already.
            ValueError: The seed is not a log, or the cwd is relative.
            Exception: What a `session/created` listener raised; the session is taken out again first.
        """
        if header.id in self._by_id:
            raise Duplicate(f"session {header.id} is live already")
        if header.cwd is not None and not header.cwd.startswith("/"):
            raise ValueError(f"a session's cwd must be absolute, not {header.cwd!r}")
        session = Session(header, seed, clock=self._clock)
        self._by_id[header.id] = session

        def dispose() -> None:
            if self._by_id.get(header.id) is session:
                del self._by_id[header.id]

        try:
            self._bus.emit(SessionCreated(header.id))
        except BaseException:
            dispose()
            raise
        return session, dispose

    def get(self, session_id: str) -> Session | None:
        """The live session of that id, or None."""
        return self._by_id.get(session_id)

    def __iter__(self) -> Iterator[Session]:
        return iter(tuple(self._by_id.values()))
