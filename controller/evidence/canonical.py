"""RFC 8785 bytes and a parser that accepts nothing else.

Python's parser keeps the last of two equal keys, reads NaN and guesses encodings; every one of those would give two
readers of the same signed bytes two meanings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final, NoReturn, TypeVar

import rfc8785
from pydantic import ValidationError

from controller.domain.record import Record, field_faults
from controller.errors import NotCanonical

R = TypeVar("R", bound=Record)

DEPTH_MAX: Final = 64  # no record of ours nests deeper than 10
INTEGER_MAX: Final = 2**53 - 1  # the largest that every JSON reader holds exactly


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in items:
        if key in found:
            raise NotCanonical(f"key {key!r} appears twice in one object")
        found[key] = value
    return found


def _refuse(text: str) -> NoReturn:
    raise NotCanonical(f"{text[:40]} is not an integer; signed JSON holds no floats")


# Made once: a log of 10,000 attempts has 100,000 lines.
_DECODER: Final = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_refuse, parse_constant=_refuse)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def dumps(value: Any) -> bytes:
    """The RFC 8785 bytes of a JSON value. Raises NotCanonical for floats and what JSON can't hold exactly."""
    try:
        if _has_plain_keys(value, "$", 0):
            # The standard encoder escapes as RFC 8785 does, and is ten times as fast as a pure Python one.
            return _ENCODER.encode(value).encode("utf-8")
        return rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError, TypeError) as error:
        raise NotCanonical(f"value has no canonical form: {error}") from error


def canonical(record: Record) -> bytes:
    """The canonical bytes of a record: what is hashed and signed."""
    return dumps(record.model_dump(mode="json"))


def loads(data: bytes, where: str) -> Any:
    """Parse bytes that must already be canonical; `where` names the file in the error.

    Raises NotCanonical for duplicate keys, floats, NaN, bad UTF-8, excess depth and any other spelling of the value.
    """
    try:
        value = _DECODER.decode(data.decode("utf-8"))
        expected = dumps(value)
    except (ValueError, RecursionError, NotCanonical) as error:  # ValueError: bad UTF-8, bad JSON and endless digits
        raise NotCanonical(f"{where}: {error}") from error
    if expected != data:
        place = next((i for i, (a, b) in enumerate(zip(expected, data, strict=False)) if a != b), len(expected))
        raise NotCanonical(f"{where}: byte {place} differs from the RFC 8785 form of the same value")
    return value


def parse(data: bytes, kind: type[R], where: str = "input") -> R:
    """Read one record from canonical bytes. Raises NotCanonical naming the file and the field."""
    loads(data, where)
    try:
        return kind.model_validate_json(data, by_alias=True, by_name=False)
    except ValidationError as error:
        raise NotCanonical(f"{where}: {field_faults(error, whole='the record')[0]}") from error


def lines(records: Iterable[Record]) -> bytes:
    """JSON lines: the canonical bytes of each record, each ended by one newline."""
    return b"".join(canonical(record) + b"\n" for record in records)


def parse_lines(data: bytes, kind: type[R], where: str) -> tuple[R, ...]:
    """Read JSON lines of canonical records. Raises NotCanonical naming file, line and field."""
    if not data:
        return ()
    if not data.endswith(b"\n"):
        raise NotCanonical(f"{where}: the last line has no newline")
    return tuple(parse(line, kind, f"{where}:{number}") for number, line in enumerate(data[:-1].split(b"\n"), start=1))


def _has_plain_keys(value: Any, place: str, depth: int) -> bool:
    """True when every key is ASCII, so that the order of code points is the order RFC 8785 asks for.

    Refuses floats even when whole, because 1.0 and 1 would be two spellings of one value, and integers that a reader
    with 64-bit floats could not hold.
    """
    if depth > DEPTH_MAX:
        raise NotCanonical(f"{place[:80]}: nested deeper than {DEPTH_MAX}")
    if isinstance(value, str) or value is None or isinstance(value, bool):
        return True
    if isinstance(value, int):
        if not -INTEGER_MAX <= value <= INTEGER_MAX:
            raise NotCanonical(f"{place}: has no canonical form: the integer is beyond 2^53")
        return True
    if isinstance(value, float):
        raise NotCanonical(f"{place}: floats are not allowed in signed JSON")
    if isinstance(value, dict):
        plain = True
        for key, item in value.items():
            if not isinstance(key, str):
                raise NotCanonical(f"{place}: key {key!r} is not text")
            plain = _has_plain_keys(item, f"{place}.{key}", depth + 1) and key.isascii() and plain
        return plain
    if isinstance(value, list | tuple):
        plain = True
        for position, item in enumerate(value):
            plain = _has_plain_keys(item, f"{place}[{position}]", depth + 1) and plain
        return plain
    raise NotCanonical(f"{place}: {type(value).__name__} has no canonical form")
