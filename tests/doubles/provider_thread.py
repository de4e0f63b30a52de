"""The model's endpoint in a thread of its own, for code that runs its own event loop."""

from collections.abc import Iterator
from contextlib import contextmanager

from anyio.from_thread import start_blocking_portal

from tests.doubles.provider_server import ProviderServer, provider_server


@contextmanager
def provider_in_thread() -> Iterator[ProviderServer]:
    """A server on a free loopback port; plan before it is asked, look at its requests afterwards."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(provider_server()) as server:
        yield server
