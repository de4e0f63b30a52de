"""A peer with a list for a wire, and a table of small methods behind it."""

import json
from typing import Any

from acp_server.rpc.dispatch import Dispatcher
from acp_server.rpc.peer import Peer
from acp_server.rpc.pending import Pending


class Ends:
    """A peer with a list for a wire and a table of small methods behind it."""

    def __init__(self) -> None:
        self.said: list[dict[str, Any]] = []
        self.pendings: list[Pending] = []
        self.calls: list[dict[str, Any]] = []
        self.peer = Peer(self)
        methods = {"echo": self._echo, "wait": self._wait, "fail": self._fail, "odd": self._odd}
        self.peer.dispatch = Dispatcher(methods, self)

    def write(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        assert b"\n" not in line[:-1]
        self.said.append(json.loads(line))

    def hear(self, line: str | bytes | dict[str, Any]) -> list[dict[str, Any]]:
        """Take a line; what was said because of it."""
        before = len(self.said)
        if isinstance(line, dict):
            line = json.dumps(line)
        self.peer.on_line(line.encode() if isinstance(line, str) else line)
        return self.said[before:]

    def _echo(self, ends: "Ends", /, **params: Any) -> dict[str, Any]:
        self.calls.append(params)
        return params

    def _wait(self, ends: "Ends", /, **params: Any) -> Pending:
        self.pendings.append(Pending())
        return self.pendings[-1]

    def _fail(self, ends: "Ends", /, **params: Any) -> None:
        raise RuntimeError("secret detail")

    def _odd(self, ends: "Ends", /, **params: Any) -> object:
        return object()


def call(method: object = "echo", **members: Any) -> dict[str, Any]:
    """A request, or without an id a notification."""
    return {"jsonrpc": "2.0", "method": method, **members}
