"""What every test shares: one async backend and a bound on waiting."""

import os

import pytest
from hypothesis import settings

# No test asks the keyring of whoever runs it.
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"

SWEEP_TIMEOUT_S = 900

# Two shared cores are sometimes slow; a test's own time limit tells what hangs.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The product runs on asyncio alone, so tests do too."""
    return "asyncio"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give sweeps longer than the bound pyproject.toml sets for every other test."""
    for item in items:
        if item.get_closest_marker("sweep") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SWEEP_TIMEOUT_S))
