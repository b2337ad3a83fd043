"""One page of a usage report, whichever provider wrote it, and what every reader of one holds to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, model_validator

from controller.domain.instant import InstantMs, instant_text
from controller.domain.provider_report import MINUTE_MS, ReportedUsage
from controller.domain.record import Record
from controller.errors import InvalidInput

Provider = Literal["anthropic", "openai"]
COUNT_MAX: Final = 10**12  # of one minute and key; what it costs must stay an amount that our records hold
INSTANT_MAX: Final = InstantMs(2**47)  # in the year 6429; the years of a written instant have four digits
Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]


class ForeignRecord(Record):
    """An object of a provider's. It may gain fields; one that counts something we don't know is refused."""

    model_config = ConfigDict(extra="allow")

    @model_validator(mode="after")
    def _counts_nothing_unknown(self) -> ForeignRecord:
        for name, value in (self.model_extra or {}).items():
            if not isinstance(value, str | bool) and value not in (None, 0, [], {}):
                raise ValueError(f"{name}: this version does not know the field, and it is not empty")
        return self


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One result. `conditions` tell it from the others of its bucket."""

    place: str
    key_id: str | None
    conditions: Mapping[str, object]
    usage: ReportedUsage


@dataclass(frozen=True, slots=True)
class ReportPage:
    """Buckets of one minute each, by their start, in the order of the file."""

    provider: Provider
    name: str
    minutes: tuple[InstantMs, ...]
    rows: tuple[ReportRow, ...]
    has_more: bool


READ_AGAIN: Final = "Ask the provider again with bucket_width=1m, grouped by api_key_id, model and service_tier."
PageReader = Callable[[bytes, str], ReportPage]


def check_minute(start: int, end: int, place: str) -> InstantMs:
    """The start of a bucket that is one whole minute. Raises InvalidInput naming its place."""
    if not 0 <= start <= INSTANT_MAX:
        raise InvalidInput(f"{place}: the bucket starts {start} milliseconds from 1970, which is no time of a report")
    if end - start != MINUTE_MS or start % MINUTE_MS:
        raise InvalidInput(
            f"{place}: the bucket from {instant_text(InstantMs(start))} is {(end - start) / 1000:g} seconds wide, "
            "where one whole minute is needed",
            remedy=READ_AGAIN,
        )
    return InstantMs(start)


def conditions_of(result: ForeignRecord, names: tuple[str, ...]) -> dict[str, Any]:
    """Everything that tells one result of a bucket from another."""
    known = {name: getattr(result, name) for name in names}
    return known | {name: value for name, value in (result.model_extra or {}).items() if value not in (None, 0, [], {})}
