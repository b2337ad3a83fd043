"""What a release says in numbers, for machines that quote it: no run, task, tenant or file is named."""

from __future__ import annotations

from typing import Literal

from controller.domain.ids import Digest
from controller.domain.record import Record


class Metric(Record):
    """One exact number ("a/b", "a", "unbounded") with its interval; null where it is unknown or not claimed."""

    of: str  # an arm, a pair of arms, an outcome on a stack, a policy
    name: str
    value: str | None
    low: str | None = None
    high: str | None = None
    shown: str  # the value rounded for readers


def count(of: str, name: str, number: int) -> Metric:
    """A number of things, which has no interval."""
    return Metric(of=of, name=name, value=str(number), shown=f"{number:,}")


class Sources(Record):
    """What the numbers follow from, by digest."""

    manifest: Digest
    corpus_root: Digest
    dataset: Digest
    analysis: Digest


class Aggregate(Record):
    """The public numbers of a round: a pure function of its analysis."""

    schema_version: Literal["fairtrial.aggregate/1"] = "fairtrial.aggregate/1"
    protocol: str
    kind: Literal["rehearsal", "measured"]
    sources: Sources
    conclusion: str
    limitations: tuple[str, ...]
    metrics: tuple[Metric, ...]
