"""Every agent test gets an agent of its own."""

import pytest

from tests.agent_loop.agent.alone import Alone


@pytest.fixture
def alone() -> Alone:
    """A fresh one."""
    return Alone()
