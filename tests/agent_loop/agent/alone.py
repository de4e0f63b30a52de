"""An agent nobody drives, so that a test can look at one verb at a time."""

from agent_loop.agent.agent import AgentOptions, ReactLoopAgent
from agent_loop.events.bus import Bus
from agent_loop.events.facts import Fact
from agent_loop.events.moments import Discarded, Moment, Queued, StatusChanged
from agent_loop.messages import Text
from agent_loop.session.header import SessionHeader
from agent_loop.session.sessions import Session

HI = (Text("hi"),)


class Alone:
    """The agent, its bus, and every moment it told."""

    def __init__(self) -> None:
        self.bus = Bus()
        self.agent = ReactLoopAgent(Session(SessionHeader("s", 1)), AgentOptions(), self.bus)
        self.log = self.agent.session.log
        self.heard: list[Moment] = []
        for kind in (Queued, Discarded, StatusChanged):
            self.bus.on(kind, self.heard.append)

    def raise_at(self, kind: type[Fact], times: int = 1) -> None:
        """Observers of that fact raise from now on, a different text each time."""

        def observer(fact: Fact) -> None:
            if isinstance(fact, kind):
                raise RuntimeError(f"at {fact.seq}")

        self.log.observe(observer)
