"""Each test talks to a peer of its own."""

import pytest

from tests.acp_server.rpc.ends import Ends


@pytest.fixture
def ends() -> Ends:
    return Ends()
