"""What a cost-index analysis says, as records that serialise without floats.

Exact values are strings ("a/b", "a", "unbounded"); the `*_shown` strings are rounded for readers and never computed
with. Null means unknown or not applicable, and a reason stands beside it.
"""

from __future__ import annotations

from typing import Literal

from controller.domain.dataset import Currency
from controller.domain.ids import Digest
from controller.domain.outcome import Gate
from controller.domain.plan import Seed
from controller.domain.record import Record


class Estimate(Record):
    """A rate or a cost with its two-sided interval at 95 %. Wilson's bounds are decimals of 40 digits."""

    value: str | None
    value_shown: str
    low: str | None
    high: str | None
    low_shown: str
    high_shown: str
    method: Literal["wilson", "cluster-bootstrap"] | None  # null when no interval is claimed
    infinite_replicates: int = 0
    reason: str = ""  # why a value or an interval is null


class Times(Record):
    """Times of some cases of one cell, in milliseconds from the first dispatch to the terminal state."""

    cases: int
    timed: int  # cases whose time is known
    median_ms: str | None  # the mean of the middle two
    p95_ms: str | None  # nearest rank
    shown: str
    reason: str = ""


class Latency(Record):
    """Descriptive: no interval is claimed. Times of failures and timeouts are no latencies of the outcome."""

    verified: Times
    failures: Times
    timeouts: Times
    censored: int  # cases without a terminal state of their own: unresolved, lost, or written off
    censored_longest_ms: int | None  # the longest that is known of them; each is a lower bound


class Spent(Record):
    """One kind of charge in one cell. `amount` is null when a part is unsettled; `settled` is what is."""

    kind: str
    counted: bool  # within the frozen boundary
    amount: str | None
    settled: str
    currency: Currency | None  # null: several, without a conversion


class Cell(Record):
    """One outcome on one stack."""

    outcome: str
    stack: str
    model: str | None
    instances: int
    clusters: int
    attempts: int
    successes: int
    failures: int  # timeouts among them
    timeouts: int
    unknown: int
    without_row: int
    estimated_spend: int  # runs whose usage was partly assigned from the provider's report
    spend: str | None
    settled_spend: str | None  # what is settled: less than the total, when that is unknown; null in several currencies
    spend_shown: str
    currency: Currency | None
    spent: tuple[Spent, ...]
    success_rate: Estimate
    success_rate_if_unknown_succeeded: str
    cost_per_outcome: Estimate
    latency: Latency
    qualified: bool


class Total(Record):
    """One stack over all outcomes, resampled within each outcome."""

    stack: str
    instances: int
    attempts: int
    successes: int
    failures: int
    unknown: int
    spend: str | None
    spend_shown: str
    currency: Currency | None
    success_rate: Estimate
    cost_per_outcome: Estimate


class Cohort(Record):
    """One outcome: its instances and the draws that all of its stacks share."""

    outcome: str
    instances: int
    clusters: int
    independent: bool  # every instance is a cluster of its own
    clusters_digest: Digest  # of the cluster ids in byte order, each ended by a newline
    label: str | None  # of the stream of draws; null below two clusters
    matrix_digest: Digest | None


class CostIndexAnalysis(Record):
    """The whole result: a pure function of the dataset, the frozen plan and the seed."""

    schema_version: Literal["fairtrial.cost-index/1"] = "fairtrial.cost-index/1"
    protocol: Literal["cost-index"] = "cost-index"
    methodology: str
    round_id: str
    kind: Literal["rehearsal", "measured"]
    manifest_digest: Digest
    plan_digest: Digest | None
    generator: str
    seed: Seed
    resamples: int
    ranks: tuple[int, int]  # nearest rank, of the ends of an interval
    level: str = "1/20"
    currency: Currency | None
    counted: tuple[str, ...]
    exclusions: tuple[str, ...]
    cohorts: tuple[Cohort, ...]
    cells: tuple[Cell, ...]  # in byte order of outcome and stack: no ranking
    totals: tuple[Total, ...]
    gates: tuple[Gate, ...]
    faults: dict[
        str, tuple[str, ...]
    ]  # by gate, the runs that failed it: with `round_id`, all that is not for publication
    qualified: bool  # as a comparison; a release needs more, see `release_needs`
    conclusion: str
    limitations: tuple[str, ...]
    notes: tuple[str, ...]
    release_needs: tuple[str, ...]

    def cell(self, outcome: str, stack: str) -> Cell:
        """The cell of that outcome and stack; KeyError when there is none."""
        return {(cell.outcome, cell.stack): cell for cell in self.cells}[outcome, stack]
