"""Names that strangers give to tasks, arms and the like. What a reader sees of a name is all of it."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Final

from pydantic import AfterValidator, StringConstraints

NAME_CHARS_MAX: Final = 256  # more than any id needs, and few enough for a figure and an error's line
# Controls, format characters such as zero-width ones and those that turn the direction of text, and line separators.
_UNSEEN_KINDS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Letters, marks and a symbol that are drawn as nothing: fillers, joiners, selectors of variants, an empty Braille cell.
_UNSEEN: Final = frozenset(
    map(
        chr,
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810), 0x2800, 0x3164, *range(0xFE00, 0xFE10), 0xFFA0,
         *range(0xE0100, 0xE01F0)),
    )
)  # fmt: skip


def _seen(name: str) -> str:
    """The name. Raises ValueError when a part of it can't be seen."""
    for char in name:
        if unicodedata.category(char) in _UNSEEN_KINDS or char in _UNSEEN:
            raise ValueError(f"holds {char!a}, which no reader can see")
    if name != name.strip():
        raise ValueError("begins or ends with a space, which no reader can see")
    return name


Name = Annotated[str, StringConstraints(min_length=1, max_length=NAME_CHARS_MAX), AfterValidator(_seen)]


def look(name: str) -> str:
    """The same text for all names that look alike: one Unicode form, and one space wherever there is some."""
    return " ".join((name if name.isascii() else unicodedata.normalize("NFKC", name)).split())
