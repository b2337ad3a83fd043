"""RFC 8785 bytes, and a parser that accepts no others. Floats are refused, and integers that a float could not hold."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Tuple

from .refusal import Refused

DEPTH_MAX = 64
INTEGER_MAX = 2**53 - 1


def dumps(value: Any) -> bytes:
    """The canonical bytes of a value. Raises Refused for what has none."""
    try:
        text = json.dumps(_ordered(value, 0), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Refused("a text holds half a surrogate pair") from error


def loads(data: bytes, where: str) -> Any:
    """The value of canonical bytes; `where` names them in a refusal."""
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_float=_no_float,
            parse_constant=_no_float,
            parse_int=_integer,
        )
        expected = dumps(value)
    except Refused as refusal:
        raise Refused(f"{where}: {refusal}") from refusal
    except (ValueError, RecursionError) as error:
        raise Refused(f"{where}: not JSON in UTF-8: {str(error)[:120]}") from error
    if expected != data:
        raise Refused(f"{where}: not in the RFC 8785 form of its value")
    return value


def loads_lines(data: bytes, where: str) -> List[Tuple[Any, bytes]]:
    """The values of JSON lines, each with its own bytes; every line ends with a newline."""
    if not data:
        return []
    if not data.endswith(b"\n"):
        raise Refused(f"{where}: the last line has no newline")
    return [(loads(line, f"{where}:{number}"), line) for number, line in enumerate(data[:-1].split(b"\n"), start=1)]


def _object(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refused("a key stands twice in one object")
    return found


def _no_float(text: str) -> Any:
    raise Refused(f"{text[:40]} is not an integer")


def _integer(text: str) -> int:
    if len(text) > 17:
        raise Refused("an integer is beyond 2^53")
    return int(text)


def _ordered(value: Any, depth: int) -> Any:
    """The same value with the keys of every object in the order of their UTF-16 code units."""
    if depth > DEPTH_MAX:
        raise Refused(f"nested deeper than {DEPTH_MAX}")
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        if abs(value) > INTEGER_MAX:
            raise Refused("an integer is beyond 2^53")
        return value
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
        return {key: _ordered(value[key], depth + 1) for key in keys}
    if isinstance(value, (list, tuple)):
        return [_ordered(item, depth + 1) for item in value]
    raise Refused(f"{type(value).__name__} has no canonical form")
