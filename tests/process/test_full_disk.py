"""A file system without a free block under a running server, where part of a write may still fit."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.disk import SmallDisk, kinds, news, with_a_turn
from tests.process.server import DONE


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallDisk]:
    """A server on a small disk that is not started yet."""
    made = SmallDisk(tmp_path)
    if not SmallDisk.is_possible(made.state):
        pytest.skip("this machine lets nobody mount a small file system: no disk can be filled")
    yield made
    made.close()


def test_a_full_disk_is_told_once_and_gets_everything_when_there_is_room(small: SmallDisk) -> None:
    """The same with no byte left on the file system, where part of a write may still fit."""
    session = with_a_turn(small, DONE, DONE, DONE)
    long = "x" * 10_000

    with small.full():
        told = [news(small.run(session, long)) for _ in range(2)]
        small.rescue()
        kept = kinds(small, session)
    told.append(news(small.run(session)))
    small.rescue()

    assert "could not be saved to disk" in told[0][0]
    assert [len(it) for it in told] == [1, 0, 0]
    assert kept == ["completed"]
    assert kinds(small, session) == ["completed"] * 4
    assert small.leave() == 0
    assert small.editor.stderr == ""
