"""Each test gets places for a server of its own, and leaves no process behind."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.server import Server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """One that is not started yet."""
    made = Server(tmp_path)
    yield made
    made.close()
    assert made.children() == []
