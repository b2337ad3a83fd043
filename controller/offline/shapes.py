"""Typed reading: a dataclass says what a JSON object must hold, and `read` makes one or refuses.

Nothing is converted. A field with a default may be absent; a field that the class does not name is refused, except in
subclasses of `Partial`, of which only the named fields are read.
"""

from __future__ import annotations

import dataclasses
import re
from typing import (
    Annotated,
    Any,
    Callable,
    Dict,
    Literal,
    Optional,
    Pattern,
    Type,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from .refusal import Refused

T = TypeVar("T")
Reader = Callable[[Any, str], Any]


class Partial:
    """Base of records of which other fields are left alone."""


@dataclasses.dataclass(frozen=True)
class Between:
    """The least and the largest value of an integer."""

    least: int
    most: Optional[int] = None


_READERS: Dict[Any, Reader] = {}  # one per class, made when it is first read

Whole = Annotated[int, Between(0)]
Positive = Annotated[int, Between(1)]
Digest = Annotated[str, re.compile(r"sha256:[0-9a-f]{64}")]
Slug = Annotated[str, re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")]
Usd = Annotated[str, re.compile(r"(0|[1-9][0-9]{0,12})(\.[0-9]{1,30})?")]


def read(kind: Type[T], value: Any, where: str) -> T:
    """The value as a record of that class. Raises Refused naming the field."""
    if kind not in _READERS:
        _READERS[kind] = _record_reader(kind)
    return cast(T, _READERS[kind](value, where))


def _record_reader(kind: Any) -> Reader:
    hints = get_type_hints(kind, include_extras=True)
    fields = {field.name: field for field in dataclasses.fields(kind)}
    readers = {name: _reader(hints[name]) for name in fields}
    missing = dataclasses.MISSING
    required = [name for name, f in fields.items() if f.default is missing and f.default_factory is missing]
    is_closed = not issubclass(kind, Partial)

    def read_record(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise Refused(f"{where}: not an object")
        for name in required:
            if name not in value:
                raise Refused(f"{where}: {name} is absent")
        if is_closed:
            for name in value:
                if name not in readers:
                    raise Refused(f"{where}: {name[:60]!r} is not a known field")
        return kind(
            **{name: reader(value[name], f"{where}: {name}") for name, reader in readers.items() if name in value}
        )

    return read_record


def _reader(hint: Any) -> Reader:
    if dataclasses.is_dataclass(hint):
        return _record_reader(hint)
    if hint in (str, int, bool):
        return _plain(hint)
    if hint is Any:
        return lambda value, where: value
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _checked(_reader(parts[0]), parts[1])
    if origin is Union:
        inner = _reader(parts[0])
        return lambda value, where: None if value is None else inner(value, where)
    if origin is Literal:
        return lambda value, where: _one_of(value, parts, where)
    if origin is tuple:
        return _listed(_reader(parts[0]), None if parts[1] is ... else len(parts))
    if origin is dict:
        return _keyed(_reader(parts[0]), _reader(parts[1]))
    raise TypeError(f"no reader for {hint!r}")


def _plain(kind: type) -> Reader:
    def read_plain(value: Any, where: str) -> Any:
        if type(value) is not kind:
            raise Refused(f"{where}: not of type {kind.__name__}")
        return value

    return read_plain


def _checked(inner: Reader, rule: Union[Between, Pattern[str]]) -> Reader:
    def read_checked(value: Any, where: str) -> Any:
        found = inner(value, where)
        if isinstance(rule, Between):
            if found < rule.least or (rule.most is not None and found > rule.most):
                raise Refused(f"{where}: {found} is out of range")
        elif rule.fullmatch(found) is None:
            raise Refused(f"{where}: {found[:60]!r} is malformed")
        return found

    return read_checked


def _one_of(value: Any, allowed: Any, where: str) -> Any:
    if not any(type(value) is type(each) and value == each for each in allowed):
        raise Refused(f"{where}: {str(value)[:60]!r} is none of the known values")
    return value


def _listed(inner: Reader, length: Optional[int]) -> Reader:
    def read_list(value: Any, where: str) -> Any:
        if not isinstance(value, list) or (length is not None and len(value) != length):
            raise Refused(f"{where}: not a list{'' if length is None else f' of {length}'}")
        return tuple(inner(item, f"{where}[{place}]") for place, item in enumerate(value))

    return read_list


def _keyed(key_reader: Reader, inner: Reader) -> Reader:
    def read_keyed(value: Any, where: str) -> Dict[Any, Any]:
        if not isinstance(value, dict):
            raise Refused(f"{where}: not an object")
        return {key_reader(key, where): inner(item, f"{where}.{key[:60]}") for key, item in value.items()}

    return read_keyed
