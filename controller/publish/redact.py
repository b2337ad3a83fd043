"""Find every value that the controller knows to be secret in text that a hostile program wrote, however it is spelled.

Value and text are reduced alike: escapes are decoded, colours and invisible characters dropped, and of the rest only
letters and digits kept, in one case. A value is then looked for as itself, in hex and in base64 at each alignment, each
also backwards, by runs of letters: whatever else stands between or around them. Pure.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

REDACTED: Final = "[redacted]"
REDACT_LETTERS: Final = 10  # so many letters in a row of a known value are enough to take them out
SCAN_LETTERS: Final = 16  # among the letters of 10,000 attempts' values no shorter run is free of chance
LETTERS_MIN: Final = 8  # a shorter value would be found by chance in every file
BLOCK_LETTERS: Final = 2**20  # a log of 10,000 attempts must not be held in memory piece by piece

_ESC: Final = r"(?:\x1b|\\+(?:x1[bB]|u001[bB]|033|e))"
_PIECE: Final = re.compile(
    r"(?P<run>(?!0[xX][0-9a-fA-F]{2}(?![0-9a-zA-Z]))[0-9A-Za-z]+)|0[xX]"
    rf"|(?:\x9b|{_ESC}\[)[0-?]*[ -/]*[@-~]|{_ESC}\][^\x07\x1b]{{0,200}}(?:\x07|{_ESC}\\+)"  # colours, cursor, titles
    r"|\\+(?:x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|u\{(?P<brace>[0-9a-fA-F]{1,6})\}|U(?P<long>[0-9a-fA-F]{8}))"
    r"|\\+(?P<octal>[0-3][0-7]{2})|\\+[a-zA-Z]"
    r"|%(?:25)*(?P<percent>[0-9a-fA-F]{2})"
    r"|&(?:amp;)*(?:#[xX](?P<entity>[0-9a-fA-F]{1,6})|#(?P<decimal>[0-9]{1,7})|[a-z]{2,4});"
    r"|(?P<wide>[^\x00-\x7f])"
)
_BASES: Final = {"octal": 8, "decimal": 10}


@dataclass(frozen=True)
class Known:
    """Values prepared for the search: runs of `letters` letters, and spellings that are shorter than one as a whole."""

    letters: int
    runs: frozenset[str]
    short: frozenset[str]

    def is_in(self, letters: str) -> bool:
        """True when a text, already reduced, holds one of the values."""
        size = self.letters
        windows = (letters[place : place + size] for place in range(len(letters) - size + 1))
        return not self.runs.isdisjoint(windows) or any(spelling in letters for spelling in self.short)


def to_redact(values: Iterable[bytes]) -> Known:
    """The values as `redact` needs them: every run of letters counts."""
    return _known(values, REDACT_LETTERS, every=1)


def to_scan(values: Iterable[bytes]) -> Known:
    """The values as a scan of many files for whole values needs them: runs that tile each spelling, for the memory."""
    return _known(values, SCAN_LETTERS, every=SCAN_LETTERS)


def _known(values: Iterable[bytes], letters: int, *, every: int) -> Known:
    forms = [form for value in values for form in spellings(value)]
    return Known(
        letters,
        frozenset(
            form[place : place + letters] for form in forms for place in range(0, len(form) - letters + 1, every)
        ),
        frozenset(form for form in forms if len(form) < letters),
    )


def redact(text: str, known: Known) -> tuple[str, int]:
    """The text without the values, and how many stretches were taken out."""
    pieces = list(_pieces(text))
    letters = "".join(piece for _, _, piece in pieces)
    marks = _marks(letters, known)
    if not marks:
        return text, 0
    starts: list[int] = []
    length = 0
    for _, _, piece in pieces:
        starts.append(length)
        length += len(piece)

    def place(letter: int) -> tuple[int, int]:
        """Where in the text this letter was spelled: from, to."""
        at = bisect_right(starts, letter) - 1
        begin, end, piece = pieces[at]
        if end - begin == len(piece):  # one character for each letter
            return begin + letter - starts[at], begin + letter - starts[at] + 1
        return begin, end

    out: list[str] = []
    shown = 0
    for first, last in marks:
        begin, end = place(first)[0], place(last)[1]
        out += [text[shown:begin], REDACTED]
        shown = end
    return "".join([*out, text[shown:]]), len(marks)


def _marks(letters: str, known: Known) -> list[tuple[int, int]]:
    """Stretches of letters that belong to a value, first and last letter, apart from one another."""
    size = known.letters
    hits = [(at, at + size - 1) for at in range(len(letters) - size + 1) if letters[at : at + size] in known.runs]
    for spelling in known.short:
        at = letters.find(spelling)
        while at >= 0:
            hits.append((at, at + len(spelling) - 1))
            at = letters.find(spelling, at + 1)
    merged: list[tuple[int, int]] = []
    for first, last in sorted(hits):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged


def spellings(value: bytes) -> Iterator[str]:
    """The reduced forms of one value that are looked for. Of a PEM file, only what is between its two marks."""
    if b"-----BEGIN" in value:
        value = b"".join(line for line in value.splitlines() if b"-----" not in line)
    forms = [value.hex(), *(_base64_inside(value, shift) for shift in range(3))]
    if value.isascii():
        forms.append(value.decode())
    for form in forms:
        letters = reduced(form)
        if len(letters) >= LETTERS_MIN:
            yield letters
            yield letters[::-1]


def _base64_inside(value: bytes, shift: int) -> str:
    """Base64 of the value where it begins `shift` bytes into a group, without the groups it shares with neighbours."""
    text = base64.b64encode(b"\0" * shift + value).decode()
    return text[4 if shift else 0 : len(text) // 4 * 4 - 4]


def reduced(text: str) -> str:
    """The letters and digits of a text as the search sees them."""
    return "".join(piece for _, _, piece in _pieces(text))


def blocks(text: str, *, letters: int = BLOCK_LETTERS) -> Iterator[str]:
    """The same of a large text, in blocks that overlap by as much as a scan looks for at once."""
    held: list[str] = []
    length, before = 0, ""
    for _, _, piece in _pieces(text):
        held.append(piece)
        length += len(piece)
        if length >= letters:
            block = before + "".join(held)
            yield block
            held, length, before = [], 0, block[-SCAN_LETTERS:]
    yield before + "".join(held)


def _pieces(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each piece of a text begins and ends, and the letters it stands for."""
    for match in _PIECE.finditer(text):
        kind, begin, end = match.lastgroup, match.start(), match.end()
        if kind == "run":
            yield begin, end, match.group().lower()
        elif kind is not None:
            code = match.group() if kind == "wide" else _character(match.group(kind), _BASES.get(kind, 16))
            plain = unicodedata.normalize("NFKC", code)
            letters = "".join(char for char in plain if char.isascii() and char.isalnum()).lower()
            if letters:
                yield begin, end, letters


def _character(digits: str, base: int) -> str:
    number = int(digits, base)
    return chr(number) if number < 0x110000 else ""
