"""JSON files that people write: one meaning or none, and the path of whatever is refused.

Python's own reader keeps the last of two equal keys, reads NaN, and turns 0.1 into something else.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from controller.domain.record import Record, field_faults, field_path
from controller.errors import InvalidInput

DEPTH_MAX: Final = 64
DIGITS_MAX: Final = 40  # no count of ours needs more, and a number of millions of digits takes minutes to read
R = TypeVar("R", bound=Record)
Place = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class _Refused:
    """A number that was met before its path was known."""

    why: str


class _Pairs(list[tuple[str, Any]]):
    """An object as written, equal keys and all."""


def read_json(data: bytes, where: str, *, floats: bool = False) -> Any:
    """The value of these bytes; `where` names the file in messages. Floats are refused unless allowed.

    Raises InvalidInput with the path of a repeated key, a float, NaN, an endless number, or text that is no UTF-8.
    """
    try:
        raw = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_Pairs,
            parse_float=_float if floats else _no_float,
            parse_int=_integer,
            parse_constant=lambda text: _Refused(f"{text} is not a number"),
        )
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where}: not readable as JSON: {error}") from None
    return _checked(raw, (), where)


def parse_record(data: bytes, kind: type[R], where: str, *, floats: bool = False) -> R:
    """A record from a file. Raises InvalidInput with one line per fault, each naming file and field."""
    value = read_json(data, where, floats=floats)
    try:
        return kind.model_validate_json(json.dumps(value), by_alias=True, by_name=False)
    except ValidationError as error:
        raise InvalidInput("\n".join(f"{where}: {fault}" for fault in field_faults(error))) from None


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's fields, for a reader of JSON that needs no path. Raises ValueError for a key that is given twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"key {repeated[:80]!r} is given twice")
    return found


def _no_float(text: str) -> _Refused:
    return _Refused(f"{text[:40]} is a float, which holds no exact value; write a decimal string")


def _float(text: str) -> float | _Refused:
    number = float(text)
    return number if math.isfinite(number) else _Refused(f"{text[:40]} is beyond any number")


def _integer(text: str) -> int | _Refused:
    digits = len(text.lstrip("-"))
    return int(text) if digits <= DIGITS_MAX else _Refused(f"{text[:20]}... has {digits} digits, which is too many")


def _checked(raw: Any, place: Place, where: str) -> Any:
    if len(place) > DEPTH_MAX:
        raise InvalidInput(f"{where}: {field_path(place)[:80]}: nested deeper than {DEPTH_MAX}")
    if isinstance(raw, _Refused):
        raise InvalidInput(f"{where}: {field_path(place)[:200]}: {raw.why}")
    if isinstance(raw, str):
        _check_text(raw, place, where)
        return raw
    if isinstance(raw, _Pairs):
        found: dict[str, Any] = {}
        for key, item in raw:
            _check_text(key, (*place, "(key)"), where)
            if key in found:
                raise InvalidInput(f"{where}: {field_path((*place, key))[:200]}: the key is given twice")
            found[key] = _checked(item, (*place, key), where)
        return found
    if isinstance(raw, list):
        return [_checked(item, (*place, position), where) for position, item in enumerate(raw)]
    return raw


def _check_text(text: str, place: Place, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"{where}: {field_path(place)[:200]}: half of a surrogate pair is not text") from None
