"""The ratios that prices of a provider are known to keep, so that a price pasted from another model is noticed. Pure.

A ratio is a suspicion, never a price: a card that breaks one on purpose says so in its exceptions file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from pydantic import Field

from controller.domain.money import NANO_PER_USD, usd_to_text
from controller.domain.rate_card import Day, Name, RateBand, RateCard, RateRow, Source
from controller.domain.record import Record

Rule = Literal[
    "read-ratio",
    "w5m-ratio",
    "w1h-ratio",
    "w30m-ratio",
    "w12h-ratio",
    "read-below-in",
    "out-above-in",
    "band-classes",
    "band-rises",
    "band-ratio",
    "batch-half",
    "surcharge-ratio",
    "in-and-out",
    "plausible",
    "in-force",
]
Ratios = Mapping[str, tuple[Rule, Fraction]]

# By provider: what each class costs, as a multiple of plain input in the same band.
CLASS_RATIOS: Final[Mapping[str, Ratios]] = {
    "anthropic": {
        "read": ("read-ratio", Fraction(1, 10)),
        "w5m": ("w5m-ratio", Fraction(5, 4)),
        "w1h": ("w1h-ratio", Fraction(2)),
    },
    "openai": {"w30m": ("w30m-ratio", Fraction(5, 4)), "w12h": ("w12h-ratio", Fraction(5, 2))},
    "gemini": {"read": ("read-ratio", Fraction(1, 10))},
}
# Where a batch discounts tokens but, by the provider's own page, leaves cached ones at their standard price.
CACHE_UNDISCOUNTED: Final = frozenset({("gemini", "batch")})
# Above their threshold these providers double the prompt and charge half as much again for output.
LONG_CONTEXT: Final = frozenset({"openai", "gemini"})
LONG_IN: Final = Fraction(2)
LONG_OUT: Final = Fraction(3, 2)
BATCH: Final[Mapping[str, Fraction]] = {"anthropic": Fraction(1, 2), "openai": Fraction(1, 2)}
SURCHARGES: Final[Mapping[str, Fraction]] = {"anthropic": Fraction(11, 10), "openai": Fraction(11, 10)}
DEAREST_NANO: Final = 2_000 * NANO_PER_USD  # dollars per million tokens; a price per thousand pasted in lands above


class CardException(Record):
    """One ratio that one model is known to break: the ratio that holds instead where there is one, and who says so."""

    rule: Rule
    provider: Name
    model: Name
    ratio: str | None = Field(default=None, pattern=r"^(0|[1-9][0-9]?)(\.[0-9]{1,6})?$")
    reason: str = Field(min_length=1, max_length=300)
    source: Source
    retrieved_on: Day

    @property
    def name(self) -> str:
        """How findings and reports call it."""
        return f"{self.rule}:{self.provider}/{self.model}"


class CardExceptions(Record):
    """The file."""

    schema_version: Literal["fairtrial.card-exceptions/1"] = "fairtrial.card-exceptions/1"
    exceptions: tuple[CardException, ...] = Field(max_length=1000)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to look at: which rule, which model, which field, what is odd, and the ratio that was found."""

    rule: Rule
    provider: str
    model: str
    place: str
    fault: str
    ratio: Fraction | None = None

    def __str__(self) -> str:
        return f"{self.place}: {self.fault} [{self.rule}:{self.provider}/{self.model}]"


@dataclass(frozen=True, slots=True)
class LintReport:
    """What stands, and how each exception did."""

    findings: tuple[Finding, ...]
    used: tuple[str, ...]
    unused: tuple[str, ...]


def lint(card: RateCard, exceptions: CardExceptions) -> LintReport:
    """Every finding that no exception covers. An exception with a ratio covers exactly that ratio."""
    standing: list[Finding] = []
    used: set[str] = set()
    for finding in (finding for position in range(len(card.rows)) for finding in _row_findings(card, position)):
        covering = [item.name for item in exceptions.exceptions if _covers(item, finding)]
        used.update(covering)
        if not covering:
            standing.append(finding)
    names = dict.fromkeys(item.name for item in exceptions.exceptions)
    return LintReport(
        tuple(standing),
        tuple(name for name in names if name in used),
        tuple(name for name in names if name not in used),
    )


def _covers(item: CardException, finding: Finding) -> bool:
    same = (item.rule, item.provider, item.model) == (finding.rule, finding.provider, finding.model)
    return same and (item.ratio is None or Fraction(item.ratio) == finding.ratio)


def _row_findings(card: RateCard, position: int) -> Iterator[Finding]:
    row, place = card.rows[position], f"rows[{position}]"
    if not row.in_force(row.retrieved_on):
        yield _found(row, "in-force", place, f"is not in force on {row.retrieved_on}, when it was retrieved")
    for number, band in enumerate(row.bands):
        inside = f"{place}.bands[{number}].usd_per_million"
        yield from _band_findings(row, band, inside)
        yield from _class_ratios(row, band, inside)
        if number:
            yield from _rise_findings(row, row.bands[number - 1], band, inside)
    yield from _batch_findings(card.rows, row, place)
    for number, surcharge in enumerate(row.surcharges):
        expected = SURCHARGES.get(row.provider)
        found = Fraction(surcharge.token_multiplier)
        if expected is not None and found != expected:
            yield _unlike(
                row, "surcharge-ratio", f"{place}.surcharges[{number}]", found, expected, "the price elsewhere"
            )


def _band_findings(row: RateRow, band: RateBand, place: str) -> Iterator[Finding]:
    prices = band.nano_usd_per_million
    plain, out = prices.get("in"), prices.get("out")
    if not plain or not out:
        yield _found(row, "in-and-out", place, "`in` and `out` both need a price above 0")
        return
    if out < plain:
        yield _found(row, "out-above-in", f"{place}.out", f"{_usd(out)} is below the price of input, {_usd(plain)}")
    if prices.get("read", 0) >= plain:
        yield _found(row, "read-below-in", f"{place}.read", f"{_usd(prices['read'])} is no cheaper than {_usd(plain)}")
    for name, price in prices.items():
        if price > DEAREST_NANO:
            yield _found(row, "plausible", f"{place}.{name}", f"{_usd(price)} per million tokens; per which unit?")


def _class_ratios(row: RateRow, band: RateBand, place: str) -> Iterator[Finding]:
    prices: Mapping[str, int] = {str(name): price for name, price in band.nano_usd_per_million.items()}
    plain = prices.get("in")
    if (row.provider, row.tier) in CACHE_UNDISCOUNTED:
        return
    for name, (rule, expected) in CLASS_RATIOS.get(row.provider, {}).items():
        if plain and name in prices and Fraction(prices[name], plain) != expected:
            yield _unlike(row, rule, f"{place}.{name}", Fraction(prices[name], plain), expected, "`in`")


def _rise_findings(row: RateRow, lower: RateBand, upper: RateBand, place: str) -> Iterator[Finding]:
    low, high = lower.nano_usd_per_million, upper.nano_usd_per_million
    if low.keys() != high.keys():
        unlike = ", ".join(sorted(low.keys() ^ high.keys()))
        yield _found(row, "band-classes", place, f"prices other classes than the band below: {unlike}")
    for name in sorted(low.keys() & high.keys()):
        if high[name] < low[name]:
            yield _found(
                row, "band-rises", f"{place}.{name}", f"{_usd(high[name])} is below {_usd(low[name])}, the band below"
            )
        expected = LONG_OUT if name == "out" else LONG_IN
        if row.provider in LONG_CONTEXT and low[name] and Fraction(high[name], low[name]) != expected:
            found = Fraction(high[name], low[name])
            yield _unlike(row, "band-ratio", f"{place}.{name}", found, expected, "the band below")


def _batch_findings(rows: Sequence[RateRow], row: RateRow, place: str) -> Iterator[Finding]:
    expected = BATCH.get(row.provider)
    if row.tier != "batch" or expected is None:
        return
    wanted = (row.provider, row.model, "standard", row.speed, row.geo)
    for standard in (other for other in rows if other.conditions == wanted):
        for number, (base, band) in enumerate(zip(standard.bands, row.bands, strict=False)):
            for name, price in band.nano_usd_per_million.items():
                full = base.nano_usd_per_million.get(name)
                if full and Fraction(price, full) != expected:
                    inside = f"{place}.bands[{number}].usd_per_million.{name}"
                    yield _unlike(row, "batch-half", inside, Fraction(price, full), expected, "the standard tier")


def _unlike(row: RateRow, rule: Rule, place: str, found: Fraction, expected: Fraction, of: str) -> Finding:
    fault = f"is {_ratio(found)} times {of}, expected {_ratio(expected)}"
    return Finding(rule, row.provider, row.model, place, fault, found)


def _found(row: RateRow, rule: Rule, place: str, fault: str) -> Finding:
    return Finding(rule, row.provider, row.model, place, fault)


def _ratio(value: Fraction) -> str:
    try:
        return usd_to_text(value)
    except ValueError:
        return str(value)


def _usd(nano: int) -> str:
    return usd_to_text(Fraction(nano, NANO_PER_USD))
