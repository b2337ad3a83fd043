"""What the rules of all dialects are made of: fields that are allowed, switched off, or not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from controller.meter.admission.refusals import Refused

Body = Mapping[str, Any]
EMPTY: Final[tuple[object, ...]] = (None, False, [], "")  # an empty object means a feature with its defaults
TOKEN_LIMIT_MAX: Final = 10**9  # no model writes as much; what a request may cost must stay an amount a ledger holds


def check_fields(body: Body, *, known: frozenset[str], off: frozenset[str], where: str = "") -> None:
    """Refuse a field that is switched off (unless it is empty) or not known. Raises Refused(400) with its path."""
    for name, value in body.items():
        if name in known:
            continue
        if name not in off:
            raise Refused(400, f"{where}{name[:80]}: the meter does not know this field, so it can't say what it costs")
        if value not in EMPTY:
            raise Refused(400, f"{where}{name}: this feature is switched off for every harness")


def allow_only(body: Body, name: str, allowed: tuple[object, ...], *, where: str = "") -> None:
    """Refuse any value of a field but these, or its absence. Raises Refused(400)."""
    value = body.get(name)
    if value is not None and not any(type(value) is type(one) and value == one for one in allowed):
        raise Refused(400, f"{where}{name}: {str(value)[:60]!r} is not allowed")


def objects(body: Body, name: str, *, where: str = "") -> list[Body]:
    """A list of objects; absent is empty. Raises Refused(400) for anything else."""
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise Refused(400, f"{where}{name}: must be a list of objects")
    return value


def mapping(body: Body, name: str, *, where: str = "") -> Body:
    """A nested object; absent is empty. Raises Refused(400) for anything else."""
    value = body.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refused(400, f"{where}{name}: must be an object")
    return value


def token_limit(body: Body, names: Iterable[str], *, where: str = "") -> int | None:
    """The first of these limits that the request sets. Raises Refused(400) when one is no whole number of tokens."""
    found: list[int] = []
    for name in names:
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise Refused(400, f"{where}{name}: must be a whole number of tokens")
        if value > TOKEN_LIMIT_MAX:
            raise Refused(400, f"{where}{name}: must be at most {TOKEN_LIMIT_MAX} tokens")
        found.append(value)
    return found[0] if found else None
