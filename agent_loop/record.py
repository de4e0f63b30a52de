"""Value classes that cost a start-up little: `@record` instead of `@dataclass(frozen=True, slots=True)`.

There are a hundred of them, and a frozen dataclass takes half a millisecond to make, five times what this
takes. The type checker freezes a record; nothing at run time does. Equality, hash and repr are shared.
"""

import dataclasses
from typing import Any, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, eq_default=True, field_specifiers=(dataclasses.field,))
def record(cls: type[T]) -> type[T]:
    """Make a slotted value class: compared by its fields, hashable when they are, not to be changed."""
    # Any: the checker takes its picture of a record from `dataclass_transform`, not from what is done here.
    made: Any = dataclasses.dataclass(slots=True, eq=False, repr=False)(cls)
    made.__eq__, made.__hash__ = _eq, _hash
    if made.__repr__ is object.__repr__:
        made.__repr__ = _repr
    return made  # type: ignore[no-any-return]


def replace(value: T, **changes: Any) -> T:
    """A copy with some fields changed; see `dataclasses.replace`."""
    # A record is a dataclass, which `dataclass_transform` cannot say.
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


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
    return tuple(getattr(self, name) for name in self.__dataclass_fields__)
