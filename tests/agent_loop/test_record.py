"""The value classes of the house: what they share with dataclasses, and what they leave out."""

import dataclasses
from dataclasses import field
from threading import Barrier, Thread
from typing import Any, ClassVar, Generic, TypeVar

import pytest

from agent_loop.record import record, replace

T = TypeVar("T")


def point() -> Any:
    """A record nobody has made an object of."""

    @record
    class Point:
        """Where something is."""

        KIND: ClassVar[str] = "point"
        x: int
        y: int = 0
        tags: list[str] = field(default_factory=list)
        secret: str = field(default="", repr=False)

    return Point


def test_a_record_takes_its_fields_by_place_and_by_name_and_fills_in_what_has_a_default() -> None:
    """Our promise: `@record` reads like `@dataclass`."""
    made = point()(1, secret="s")

    assert (made.x, made.y, made.tags, made.secret, made.KIND) == (1, 0, [], "s", "point")


def test_two_objects_share_no_default_that_was_made_for_one() -> None:
    """Our promise: a default factory is called for each object."""
    kind = point()

    kind(1).tags.append("mine")

    assert kind(1).tags == []


def test_records_are_compared_by_class_and_fields() -> None:
    """Our promise: values, whatever object holds them."""
    kind, other = point(), point()

    assert kind(1, 2) == kind(1, 2)
    assert kind(1, 2) != kind(1, 3)
    assert kind(1, 2) != other(1, 2)
    assert hash(kind(1, tags=())) == hash(kind(1, tags=()))


def test_what_is_shown_of_a_record_leaves_out_what_must_not_be_shown() -> None:
    """Our promise: a key does not get into the log file."""
    assert repr(point()(1, secret="s")) == "point.<locals>.Point(x=1, y=0, tags=[])"


@pytest.mark.parametrize("first", [True, False], ids=["the first object", "a later one"])
@pytest.mark.parametrize("values", [(), (1, 2, [], "", 5)], ids=["too few", "too many"])
def test_wrong_fields_are_refused(values: tuple[Any, ...], first: bool) -> None:
    """Our promise: the first object is checked as all others are."""
    kind = point()
    if not first:
        kind(1)

    with pytest.raises(TypeError, match="argument"):
        kind(*values)


def test_a_record_has_no_room_for_what_is_no_field() -> None:
    """Our promise: a mistyped name is an error, and a fact is small."""
    with pytest.raises(AttributeError):
        point()(1).z = 2


def test_a_match_statement_takes_a_record_apart_by_place() -> None:
    """Our promise: closed unions of records are matched to the last case."""
    match point()(1, 2):
        case object(x=x, y=y):
            assert (x, y) == (1, 2)
    assert point().__match_args__ == ("x", "y", "tags", "secret")


def test_a_record_made_of_a_record_has_the_fields_of_both() -> None:
    """Our promise: whichever of the two has objects first."""

    @record
    class Box(Generic[T]):
        content: T
        label: str = "box"

    @record
    class Crate(Box[T]):
        label: str = "crate"
        nails: int = 4

    crate, box = Crate("apples"), Box("pears")

    assert (crate.content, crate.label, crate.nails) == ("apples", "crate", 4)
    assert (box.content, box.label) == ("pears", "box")
    assert Crate.__match_args__ == ("content", "label", "nails")


def test_a_class_below_a_record_may_be_the_first_with_an_object() -> None:
    """Our promise: a plain subclass finds the record above it."""

    class Marked(point()):  # type: ignore[misc]
        pass

    assert Marked(1).x == 1


def test_a_copy_differs_in_what_was_changed() -> None:
    """Our promise: ours and the library's `replace` do the same."""
    made = point()(1, 2)

    assert replace(made, y=3) == dataclasses.replace(made, y=3) == type(made)(1, 3)
    assert [it.name for it in dataclasses.fields(made)] == ["x", "y", "tags", "secret"]


def test_two_threads_may_make_the_first_object_at_once() -> None:
    """Our promise: worker threads make values as the event loop does."""
    kind, start, made = point(), Barrier(4, timeout=5), []

    def make() -> None:
        start.wait()
        made.append(kind(1, tags=["t"]))

    threads = [Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)

    assert made == [kind(1, tags=["t"])] * 4
