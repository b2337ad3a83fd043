"""TOML for strict records, which take tuples where TOML has arrays and convert no scalar."""

from __future__ import annotations

import tomllib


def strict_toml(data: bytes) -> object:
    """The document with every array as a tuple. Raises ValueError for what is not UTF-8 or not TOML."""
    return _frozen(tomllib.loads(data.decode("utf-8")))


def _frozen(value: object) -> object:
    if isinstance(value, dict):
        return {key: _frozen(inner) for key, inner in value.items()}
    return tuple(_frozen(inner) for inner in value) if isinstance(value, list) else value
