"""Rules are held against calls in a folder of the test's own."""

from pathlib import Path

import pytest

from tests.doubles.workshop import Workshop


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """A fresh folder, with another beside it."""
    root = (tmp_path / "root").resolve()
    root.mkdir()
    (tmp_path / "outside").mkdir()
    return Workshop(root)
