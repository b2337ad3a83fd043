"""The base of every record: frozen, strict, and closed to unknown fields; and what to say of one that is refused."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, ValidationError


class Record(BaseModel):
    """An immutable value parsed at the border.

    Read stored bytes with `model_validate_json`: strict Python-mode validation refuses a JSON dump's strings.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", ser_json_inf_nan="null")


def field_path(parts: Iterable[int | str]) -> str:
    """`rows[3].bands[1].over` for ("rows", 3, "bands", 1, "over"); empty for the whole."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return text.removeprefix(".")


def field_faults(error: ValidationError, *, whole: str = "(whole file)") -> tuple[str, ...]:
    """Every fault of a refused record as `field.path: what is wrong`; `whole` stands for a fault of no one field."""
    return tuple(_fault(item["loc"], item["msg"], whole) for item in error.errors(include_url=False))


def _fault(place: tuple[int | str, ...], message: str, whole: str) -> str:
    path = field_path(part for part in place if part != "[key]")
    return f"{path or whole}: {message.removeprefix('Value error, ')}"
