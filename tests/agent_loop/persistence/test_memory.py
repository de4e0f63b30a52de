"""Holds the store the tests use to the contract of the stores they stand for."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

from tests.agent_loop.persistence.store_contract import FailingWrites, OpenStore, StoreContract
from tests.doubles.memory_store import MemoryStore, Shelf, full_disk


@pytest.fixture
def shelf() -> Shelf:
    return {}


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def stores(self) -> list[MemoryStore]:
        return []

    @pytest.fixture
    def open_store(self, shelf: Shelf, stores: list[MemoryStore]) -> OpenStore:
        def opened() -> MemoryStore:
            stores.append(MemoryStore(shelf))
            return stores[-1]

        return opened

    @pytest.fixture
    def recipe(self) -> str:
        pytest.skip("memory belongs to one process")

    @pytest.fixture
    def failing_writes(self, stores: list[MemoryStore]) -> FailingWrites:
        @contextmanager
        def failing() -> Iterator[None]:
            for store in stores:
                store.failing = full_disk()
            yield
            for store in stores:
                store.failing = None

        def after(_: int) -> AbstractContextManager[None]:
            return failing()

        return after

    @pytest.fixture
    def everything_stored(self, shelf: Shelf) -> Callable[[], Any]:
        return lambda: {id: (kept.header, tuple(kept.rows)) for id, kept in shelf.items()}
