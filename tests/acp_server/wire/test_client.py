"""What an editor says it can do: only a clear true is a yes."""

from typing import Any

import pytest

from acp_server.wire.client import Client, client_in

ALL = {
    "fs": {"readTextFile": True, "writeTextFile": True},
    "terminal": True,
    "auth": {"terminal": True},
    "_meta": {"terminal_output": True, "agent_loop": {"events": True}},
}


def test_what_is_said_plainly_is_taken() -> None:
    """ACP, initialization: client capabilities, each by itself."""
    assert client_in(ALL) == Client(True, True, True, True, True, True)
    assert client_in({"fs": {"readTextFile": True}}) == Client(reads=True)
    assert client_in({"fs": {"writeTextFile": True}}) == Client(writes=True)
    assert client_in({"terminal": True}) == Client(terminals=True)


@pytest.mark.parametrize(
    "said",
    [
        None,
        5,
        "all",
        [],
        {},
        {"fs": True, "terminal": 1, "_meta": {"terminal_output": "yes", "agent_loop": []}},
    ],
)
def test_anything_else_is_a_no(said: Any) -> None:
    """Spec loop 5.1: only strict true counts."""
    assert client_in(said) == Client()
