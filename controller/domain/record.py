"""The base of every record: frozen, strict, and closed to unknown fields; and what to say of one that is refused."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError


class Record(BaseModel):
    """An immutable value parsed at the border.

    Read stored bytes with `model_validate_json`: strict Python-mode validation refuses a JSON dump's strings.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", ser_json_inf_nan="null")


def field_faults(error: ValidationError, *, whole: str = "(whole file)") -> tuple[str, ...]:
    """Every fault of a refused record as `field.path: what is wrong`; `whole` stands for a fault of no one field."""
    return tuple(
        f"{'.'.join(str(part) for part in item['loc']) or whole}: {item['msg']}"
        for item in error.errors(include_url=False)
    )
