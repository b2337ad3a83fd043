"""What one response says about its own cost, and the strict counters every dialect reads it with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from controller.domain.rate_card import TokenClass
from controller.domain.usage import Usage
from controller.errors import UnpricedUsage

NESTING_MAX: Final = 32
LABEL_CHARS_MAX: Final = 64
_NUMBER_TEXT: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
COUNT_MAX: Final = 10**12  # a million times the longest context; no answer holds more, and a record must


@dataclass(frozen=True, slots=True)
class Reading:
    """One response, read. `usage` is None when the response carried none; then nothing may be assumed."""

    complete: bool
    final: bool = False  # the dialect's own end mark was seen: nothing that may follow changes the usage
    usage: Usage | None = None
    message_id: str | None = None
    model: str | None = None
    tier: str = "standard"
    speed: str = "standard"
    geo: str = "global"
    assumes_lifetime: bool = False  # cache writes came without their lifetime; the provider's default was taken
    samplings: int = 1  # how many prompts the counters are the sum of
    zero_bill_rule: str | None = None  # a documented rule under which the shown usage is not charged
    raw: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None  # why the usage cannot be relied on


@dataclass(frozen=True, slots=True)
class Counted:
    """One usage object in disjoint classes, with what could not be read from it."""

    usage: Usage
    assumes_lifetime: bool = False
    samplings: int = 1


class Reader(Protocol):
    """One response being read: fed with a whole JSON body or event by event, asked once at the end."""

    def body(self, payload: Mapping[str, Any]) -> None:
        """The JSON object of a response that was not streamed."""
        ...

    def event(self, name: str, data: bytes) -> None:
        """One server-sent event. Raises ValueError for data the dialect cannot mean."""
        ...

    def seen(self) -> Reading:
        """What the response said of itself so far, without its counters: known also when they can't be priced."""
        ...

    def reading(self) -> Reading:
        """What the response said so far. Raises UnpricedUsage when its counters contradict themselves."""
        ...


def counter(source: Mapping[str, Any], name: str, *, where: str = "usage") -> int:
    """A non-negative integer; absent and null are 0.

    Raises UnpricedUsage for anything else: a float or a negative count is not a token.
    """
    return _count(source.get(name), f"{where}.{name}")


def needed(source: Mapping[str, Any], name: str, *, where: str = "usage") -> int:
    """As `counter`, for a counter that every answer has. Raises UnpricedUsage also when it is absent or null."""
    if source.get(name) is None:
        raise UnpricedUsage(f"{where}.{name}: missing, and missing usage is not zero")
    return counter(source, name, where=where)


def _count(value: object, path: str) -> int:
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UnpricedUsage(f"{path}: {_shown(value)} is not a count")
    if value > COUNT_MAX:
        raise UnpricedUsage(f"{path}: more than {COUNT_MAX} is no answer's count")
    return value


def check_sum(parts: int, whole: int, path: str) -> None:
    """Raises UnpricedUsage when the parts are not the whole that the provider names at `path`."""
    if parts != whole:
        raise UnpricedUsage(f"{path}: {whole} is not the sum of its parts, {parts}")


def check_part(part: int, whole: int, path: str) -> None:
    """Raises UnpricedUsage when the part at `path` exceeds what it is a part of."""
    if part > whole:
        raise UnpricedUsage(f"{path}: {part} exceeds the {whole} that it is a part of")


def label(source: Mapping[str, Any], name: str, names: Mapping[str, str], default: str, *, where: str = "usage") -> str:
    """A condition under which an answer was served, in the words of rate cards.

    `names` translates the provider's words; another word stands for itself, and no row of a card will fit it unless
    the card has it. Absent, null and empty are `default`. Raises UnpricedUsage for what is no word.
    """
    value = source.get(name)
    if value is None or value == "":
        return default
    if not isinstance(value, str) or len(value) > LABEL_CHARS_MAX or not value.isprintable():
        raise UnpricedUsage(f"{where}.{name}: {_shown(value)} names no condition")
    return names.get(value, value)


def _shown(value: object) -> str:
    """A hostile value in a message: cut, and never an integer too long for Python to spell."""
    return "an integer" if isinstance(value, int) and abs(value) > COUNT_MAX else f"{value!r:.80}"


def section(source: Mapping[str, Any], name: str, *, where: str = "usage") -> Mapping[str, Any]:
    """A nested object; absent and null are empty."""
    value = source.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UnpricedUsage(f"{where}.{name} is not an object")
    return value


def entries(source: Mapping[str, Any], name: str, *, where: str = "usage") -> list[Mapping[str, Any]]:
    """A nested list of objects; absent and null are empty."""
    value = source.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise UnpricedUsage(f"{where}.{name} is not a list of objects")
    return value


def check_usage(usage: Mapping[str, Any], known: Iterable[str]) -> None:
    """As `check_known`, for the usage of a whole answer, which also must say something.

    Raises UnpricedUsage naming what is wrong.
    """
    if not usage:
        raise UnpricedUsage("the usage object is empty, and missing usage is not zero")
    check_known(usage, known)


def check_known(usage: Mapping[str, Any], known: Iterable[str], *, where: str = "usage") -> None:
    """Refuse a known counter that is no count, and any other field that holds a number but zero.

    `known` holds dotted paths, without the positions in lists; a path that ends in `.*` covers everything below it.
    Raises UnpricedUsage naming the path.
    """
    paths = set(known)
    for path, place, value in _leaves(usage, "", where):
        if path in paths:
            _count(value, place[:200])
        elif _is_number(value) and not any(f"{part}.*" in paths for part in _prefixes(path)):
            raise UnpricedUsage(f"{place[:200]}: {_shown(value)} is a counter this dialect does not know")


def _is_number(value: object) -> bool:
    """Whether a leaf may count something. Some encoders spell 64-bit integers as text."""
    if isinstance(value, str):
        return _NUMBER_TEXT.fullmatch(value) is not None and value.strip("+-0.") != ""
    return isinstance(value, int | float) and not isinstance(value, bool) and value != 0


def _prefixes(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _leaves(value: object, path: str, place: str, depth: int = 0) -> Iterable[tuple[str, str, object]]:
    """Every value that holds no other, with its path without and with the positions in lists."""
    if depth > NESTING_MAX:
        raise UnpricedUsage(f"{place[:200]} is nested deeper than {NESTING_MAX}")
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key), f"{place}.{key}", depth + 1)
    elif isinstance(value, list):
        for position, inner in enumerate(value):
            yield from _leaves(inner, path, f"{place}[{position}]", depth + 1)
    else:
        yield path, place, value


def tokens_of(**counts: int) -> dict[TokenClass, int]:
    """Token classes with their counts; `in_` is plain input. Plain input and output are kept at 0, others dropped."""
    named = {name.rstrip("_"): count for name, count in counts.items()}
    return {name: count for name, count in named.items() if count or name in ("in", "out")}  # type: ignore[misc]


def text_or_none(value: object) -> str | None:
    """The value when it is a non-empty string of reasonable length that every store can keep."""
    return value if isinstance(value, str) and 0 < len(value) <= 512 and value.isprintable() else None
