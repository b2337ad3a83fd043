"""Numbers in sentences."""

from __future__ import annotations


def numbered(count: int, noun: str) -> str:
    """`1 task`, `2 tasks`, `1,234 tasks`, for nouns that take an s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
