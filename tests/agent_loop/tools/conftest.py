"""Every tool test gets a workshop of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.doubles.workshop import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    """A fresh one, with `outside` beside its root; no group is left when a test ends."""
    root = (tmp_path / "root").resolve()
    root.mkdir()
    (tmp_path / "outside").mkdir()
    made = Workshop(root)
    yield made
    assert made.children._groups == set()
