"""Numbers and lists of a case as they are written there: exact, whole where they count something, and of finite size.

Every reader raises ValueError for what it refuses; a case may come from anyone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

from controller.analyse.holm import ALPHA
from controller.domain.exact import UNBOUNDED, Exact

Input = Mapping[str, Any]

COUNT_MAX: Final = 2**256 - 1  # the widest thing that a case may give is a counter of Philox
RESAMPLES_MAX: Final = 1_000_000  # as many as a manifest may ask
DRAWS_MAX: Final = 40_000_000  # resamples x tasks, or x comparisons: 4,000 tasks with 10,000 resamples
EXACT_TASKS_MAX: Final = 400  # of an exact distribution: the number of its resamples has a thousand digits then
REPEATS_MAX: Final = 100
_POWER_MAX: Final = 400  # digits before or after the point: "1e999999999" would fill all memory
_NUMBER: Final = re.compile(
    r"[+-]?[0-9]{1,400}(/0*[1-9][0-9]{0,400}|(\.[0-9]{0,400})?(?P<power>e[+-]?[0-9]{1,3})?)", re.IGNORECASE
)


def exact(value: Any) -> Fraction:
    """A number as the decimal or fraction it is written as."""
    text = str(value)
    written = None if isinstance(value, bool | list | dict | None) else _NUMBER.fullmatch(text)
    if written is None or abs(int((written["power"] or "e0")[1:])) > _POWER_MAX:
        raise ValueError(f"{text[:40]!r} is not a number of a sensible size")
    return Fraction(text)


def extended(value: Any) -> Exact:
    """The same, or infinity for "unbounded"."""
    return UNBOUNDED if value == "unbounded" else exact(value)


def whole(value: Any, name: str, *, least: int = 0, most: int = COUNT_MAX) -> int:
    """A whole number within bounds, in whichever way it is written; nothing is rounded."""
    number = exact(value)
    if number.denominator != 1 or not least <= number <= most:
        bound = f"at least {least}" if most == COUNT_MAX else f"from {least} to {most}"
        raise ValueError(f"{name}: {str(value)[:40]!r} is not a whole number {bound}")
    return int(number)


def share(value: Any, name: str) -> Fraction:
    """A number from zero to one, such as a quantile or a p-value."""
    number = exact(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name}: {str(value)[:40]!r} is not from 0 to 1")
    return number


def level_of(given: Input) -> Fraction:
    """The level of a test or an interval, strictly between zero and one."""
    level = share(given.get("alpha", ALPHA), "alpha")
    if level in (0, 1):
        raise ValueError("alpha: must lie between 0 and 1")
    return level


def amount(value: Any, name: str) -> Fraction:
    """Money or time that is not negative."""
    number = exact(value)
    if number < 0:
        raise ValueError(f"{name}: must not be negative")
    return number


def listed(given: Input, name: str, *, least: int = 0) -> list[Any]:
    """The list of that name, of at least so many. Raises KeyError when it is absent."""
    value = given[name]
    if not isinstance(value, list) or len(value) < least:
        raise ValueError(f"{name}: must be a list of at least {least}" if least else f"{name}: must be a list")
    return value


def counts(given: Input, name: str, *, most: int = COUNT_MAX) -> list[int]:
    """A list of one or more counts."""
    return [whole(value, name, most=most) for value in listed(given, name, least=1)]


def amounts(given: Input, name: str) -> list[Fraction]:
    """A list of one or more amounts."""
    return [amount(value, name) for value in listed(given, name, least=1)]


def resamples_of(given: Input, *, each: int) -> int:
    """How many resamples the case asks, each of so many draws."""
    found = whole(given["B"], "B", least=1, most=RESAMPLES_MAX)
    if found * each > DRAWS_MAX:
        raise ValueError(f"B: {found:,} resamples of {each:,} draws are more than {DRAWS_MAX:,}")
    return found


def label_of(given: Input) -> str:
    """The label of a stream of draws."""
    label = given["label"]
    if not isinstance(label, str) or not label.isascii():
        raise ValueError("label: must be ASCII text")
    return label
