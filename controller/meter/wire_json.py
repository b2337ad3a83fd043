"""JSON from a provider, read strictly: what two readers could understand differently is refused.

Unlike `domain.json_files`, which is for files that people write, it lets floats and halves of surrogate pairs pass:
answers hold both where they don't matter here, and the fields that do matter are checked where they are read.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

from controller.domain.json_files import once

BOM: Final = b"\xef\xbb\xbf"


def document(raw: bytes | bytearray) -> Any:
    """One JSON document in UTF-8; a byte-order mark is tolerated.

    Raises ValueError (RecursionError when nested without end) for a key that appears twice in an object, a constant
    or a number that JSON doesn't have or can't hold, and whatever else is not JSON.
    """
    text = raw.removeprefix(BOM).decode("utf-8")
    return _DECODER.decode(text)


def record(raw: bytes | bytearray) -> dict[str, Any]:
    """As `document`, which must be an object."""
    payload = document(raw)
    if not isinstance(payload, dict):
        raise ValueError("it is not a JSON object")
    return payload


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError("a number is too large")
    return number


_DECODER: Final = json.JSONDecoder(object_pairs_hook=once, parse_constant=_no_constant, parse_float=_finite)
