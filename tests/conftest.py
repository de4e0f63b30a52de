"""What every test shares: one async backend and a bound on waiting."""

import pytest

SWEEP_TIMEOUT_S = 900


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The product runs on asyncio alone, so tests do too."""
    return "asyncio"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give sweeps longer than the bound pyproject.toml sets for every other test."""
    for item in items:
        if item.get_closest_marker("sweep") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SWEEP_TIMEOUT_S))
