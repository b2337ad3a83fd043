"""The base of every record: frozen, strict, and closed to unknown fields."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable value parsed at the border.

    Read stored bytes with `model_validate_json`: strict Python-mode validation refuses a JSON dump's strings.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", ser_json_inf_nan="null")
