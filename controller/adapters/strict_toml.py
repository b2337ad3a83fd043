"""TOML for strict records, which take tuples where TOML has arrays and convert no scalar."""

from __future__ import annotations

import tomllib
from typing import Final

TOML_BYTES_MAX: Final = 16 * 2**10  # our largest is 3 KB
DOTS_MAX: Final = 200  # in one line; the parser's time grows with more than the square of a dotted key


def strict_toml(data: bytes) -> object:
    """The document with every array as a tuple. Raises ValueError for what is not UTF-8, not TOML, or over 16 KiB."""
    if len(data) > TOML_BYTES_MAX:
        raise ValueError(f"larger than {TOML_BYTES_MAX} bytes")
    if any(line.count(b".") > DOTS_MAX for line in data.split(b"\n")):
        raise ValueError(f"a line has more than {DOTS_MAX} dots")
    try:
        return _frozen(tomllib.loads(data.decode("utf-8")))
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _frozen(value: object) -> object:
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    return tuple(_frozen(inner) for inner in value) if isinstance(value, list) else value
