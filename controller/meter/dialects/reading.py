"""What one response says about its own cost, and the strict counters every dialect reads it with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from controller.domain.rate_card import TokenClass
from controller.domain.usage import Usage
from controller.errors import UnpricedUsage

NESTING_MAX: Final = 32
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
    zero_bill_rule: str | None = None  # a documented rule under which the shown usage is not charged
    raw: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None  # why the usage cannot be relied on


class Reader(Protocol):
    """One response being read: fed with a whole JSON body or event by event, asked once at the end."""

    def body(self, payload: Mapping[str, Any]) -> None:
        """The JSON object of a response that was not streamed."""
        ...

    def event(self, name: str, data: bytes) -> None:
        """One server-sent event. Raises ValueError for data the dialect cannot mean."""
        ...

    def reading(self) -> Reading:
        """What the response said so far. Raises UnpricedUsage when its counters contradict themselves."""
        ...


def counter(source: Mapping[str, Any], name: str, *, where: str = "usage") -> int:
    """A non-negative integer; absent and null are 0.

    Raises UnpricedUsage for anything else: a float or a negative count is not a token.
    """
    value = source.get(name)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UnpricedUsage(f"{where}.{name}: {_shown(value)} is not a count")
    if value > COUNT_MAX:
        raise UnpricedUsage(f"{where}.{name}: more than {COUNT_MAX} is no answer's count")
    return value


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


def check_known(usage: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse an object with a non-zero number under a path that is not known.

    `known` holds dotted paths; a path that ends in `.*` covers everything below it.
    Raises UnpricedUsage naming the path.
    """
    paths = set(known)
    for path, value in _numbers(usage, ""):
        if value and path not in paths and not any(f"{part}.*" in paths for part in _prefixes(path)):
            raise UnpricedUsage(f"usage.{path[:200]}: {_shown(value)} is a counter this dialect does not know")


def _prefixes(path: str) -> list[str]:
    parts = path.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def _numbers(value: object, path: str, depth: int = 0) -> Iterable[tuple[str, float]]:
    if depth > NESTING_MAX:
        raise UnpricedUsage(f"usage.{path} is nested deeper than {NESTING_MAX}")
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, path, depth + 1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


def tokens_of(**counts: int) -> dict[TokenClass, int]:
    """Token classes with their counts; `in_` is plain input. Plain input and output are kept at 0, others dropped."""
    named = {name.rstrip("_"): count for name, count in counts.items()}
    return {name: count for name, count in named.items() if count or name in ("in", "out")}  # type: ignore[misc]


def text_or_none(value: object) -> str | None:
    """The value when it is a non-empty string of reasonable length that every store can keep."""
    return value if isinstance(value, str) and 0 < len(value) <= 512 and value.isprintable() else None
