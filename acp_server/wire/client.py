"""What the editor can do for us, read once from its `initialize`. Pure.

Source: https://agentclientprotocol.com/protocol/v1/initialization (client capabilities)
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Client:
    """An editor's capabilities; what it does not say plainly, it has not.

    Attributes:
        reads, writes: Its files, unsaved buffers among them, each by itself.
        terminals: It runs commands in terminals of its own.
        logs_in: It runs logins in a terminal.
        draws_terminals: It draws a terminal of what it is told of a command that runs here (`_meta`, a
            convention among editors).
        events: It wants to be told of every `agent/*` moment.
    """

    reads: bool = False
    writes: bool = False
    terminals: bool = False
    logs_in: bool = False
    draws_terminals: bool = False
    events: bool = False


def client_in(capabilities: Any) -> Client:
    """The capabilities an editor sent; anything but a clear true is a no."""
    return Client(
        reads=_is_true(capabilities, "fs", "readTextFile"),
        writes=_is_true(capabilities, "fs", "writeTextFile"),
        terminals=_is_true(capabilities, "terminal"),
        logs_in=_is_true(capabilities, "auth", "terminal"),
        draws_terminals=_is_true(capabilities, "_meta", "terminal_output"),
        events=_is_true(capabilities, "_meta", "agent_loop", "events"),
    )


def _is_true(value: Any, *names: str) -> bool:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value is True
