"""Value classes that cost a start-up little: `@record` instead of `@dataclass(frozen=True, slots=True)`.

There are a hundred of them, and most have no object in a start. A frozen dataclass takes half a millisecond
to make, most of it for the compiler. A record takes a fortieth of that, and its first object has the
`__init__` of a dataclass made. The type checker freezes a record; nothing at run time does. Equality, hash
and repr are shared. To `dataclasses` the objects are a dataclass's; the class is none before it has one.
"""

import dataclasses
from inspect import get_annotations
from typing import Any, ClassVar, TypeVar, dataclass_transform, get_origin

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=True, field_specifiers=(dataclasses.field,))
def record(cls: type[T]) -> type[T]:
    """Make a slotted value class: compared by its fields, hashable when they are, not to be changed.

    What a dataclass does after its `__init__` (`__post_init__`) a record does not.
    """
    # By name, each field as `make_dataclass` takes it.
    own = {
        name: (name, hint, *([vars(cls)[name]] if name in vars(cls) else []))
        for name, hint in get_annotations(cls).items()
        if not _of_the_class(hint)
    }
    fields = {**getattr(cls, "_fields", {}), **own}
    kept = {name: it for name, it in vars(cls).items() if name not in own and name not in _UNSLOTTED}
    body = {
        **_SHARED,
        **kept,
        "__qualname__": cls.__qualname__,
        "__slots__": tuple(own),
        "__match_args__": tuple(fields),
        "_fields": fields,
    }
    # Any: the checker takes its picture of a record from `dataclass_transform`, not from what is done here.
    kind: Any = type(cls)
    return kind(cls.__name__, cls.__bases__, body)  # type: ignore[no-any-return]


def replace(value: T, **changes: Any) -> T:
    """A copy with some fields changed; see `dataclasses.replace`."""
    # The objects are those of a dataclass, which `dataclass_transform` cannot say.
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


def _of_the_class(hint: Any) -> bool:
    return get_origin(hint) is ClassVar


def _init_first(self: Any, *values: Any, **named: Any) -> None:
    """The `__init__` of a record without objects: has the real one made, once, and calls it."""
    cls: Any = next(base for base in type(self).__mro__ if "_fields" in vars(base))
    # For a class without a docstring `dataclasses` would write one, at twice the price of all the rest.
    twin: Any = dataclasses.make_dataclass(
        cls.__name__, cls._fields.values(), namespace={"__doc__": cls.__name__}, eq=False, repr=False
    )
    cls.__dataclass_fields__ = twin.__dataclass_fields__
    cls.__init__ = twin.__init__
    cls.__init__(self, *values, **named)


def _eq(self: Any, other: Any) -> Any:
    if type(self) is not type(other):
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash((type(self), _values(self)))


def _repr(self: Any) -> str:
    shown = ", ".join(
        f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr
    )
    return f"{type(self).__qualname__}({shown})"


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, name) for name in self.__match_args__)


_SHARED = {"__init__": _init_first, "__eq__": _eq, "__hash__": _hash, "__repr__": _repr}
# What a class without slots is given, and one with them must not be.
_UNSLOTTED = ("__dict__", "__weakref__")
