"""Everything a report is made from. The same context gives the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from controller.domain import bodies
from controller.domain.dataset import LogicalRunRow
from controller.domain.ids import Digest, sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.plan import RoundManifest
from controller.domain.provider_report import REFUTED
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.evidence.bundle import dispute_name
from controller.evidence.canonical import parse_lines
from controller.evidence.claims import claim
from controller.protocols.harness_round.estimates import Analysis


class Incident(Record):
    """Something that happened to the round itself: a stop, a halted cell, what an operator decided."""

    at: InstantMs
    event: str  # the statement's kind or the stop rule's name
    subject: str
    text: str


class Fact(Record):
    """One frozen thing by name, beside those the manifest holds: a service's build, a key, a log's root."""

    name: str
    value: str


class Version(Record):
    """One version of a release, and why it superseded the one before (the first one did not)."""

    number: int
    correction: str | None


class ReportContext(Record):
    """The inputs of one report."""

    manifest: RoundManifest
    manifest_digest: Digest
    dataset_digest: Digest
    rows: tuple[LogicalRunRow, ...]
    analysis: Analysis
    isolation: Literal["vm", "container"]
    incidents: tuple[Incident, ...] = ()
    facts: tuple[Fact, ...] = ()
    limitations: tuple[str, ...] = ()  # beside those that follow from the context
    started_at: InstantMs | None = None
    ended_at: InstantMs | None = None
    versions: tuple[Version, ...] = ()  # of the release, up to this one; none before the first is published
    check_command: str = "fairtrial check BUNDLE --key KEYS.json"

    @property
    def analyse_command(self) -> str:
        """Computes the published analysis again; without the round's seed, other resamples would be drawn."""
        seed = self.analysis.resampling.seed
        return f"fairtrial analyse BUNDLE/dataset.jsonl --protocol {self.analysis.protocol} --seed {seed} --json"


_ENDS: Final = frozenset({StatementKind.ROUND_STOPPED, StatementKind.ROUND_SETTLED, StatementKind.ROUND_CLOSED})
_INCIDENTS: Final[Mapping[StatementKind, tuple[type[Record], Callable[[Any], str]]]] = {
    StatementKind.CELL_HALTED: (bodies.CellHalted, lambda body: f"attempt {body.number}: {body.reason}"),
    StatementKind.DISPUTE_FILED: (
        bodies.DisputeFiled,
        lambda body: f"disputed by {body.by}; the text is {dispute_name(body.text_digest)} of the bundle",
    ),
    StatementKind.OPERATOR_ACT: (bodies.OperatorAct, lambda body: f"{body.event or body.act}: {body.note}"),
    StatementKind.ROUND_STOPPED: (bodies.RoundStopped, lambda body: f"{body.rule}: {body.detail}"),
}


def context_of_round(
    manifest: RoundManifest,
    manifest_digest: Digest,
    *,
    dataset: bytes,
    analysis: Analysis,
    statements: Sequence[Statement],
    versions: tuple[Version, ...] = (),
) -> ReportContext:
    """The context of a round's report, from its log and what was made of it. Pure.

    `dataset` holds canonical lines. Raises NotCanonical for bytes or statements that are not what they claim.
    """
    started = [each for each in statements if each.kind is StatementKind.ROUND_STARTED]
    starts = [claim(each, bodies.RoundStarted) for each in started]
    ends = [each.at for each in statements if each.kind in _ENDS]
    incidents = []
    for each in statements:
        if each.kind in _INCIDENTS:
            body, told = _INCIDENTS[each.kind]
            text = told(claim(each, body))
            incidents.append(Incident(at=each.at, event=each.kind.value, subject=each.subject, text=text))
    incidents += _refuted(statements)
    facts = [*_money_facts(statements)]
    facts += [Fact(name=f"pool, epoch {start.epoch}", value=f"{start.pool}, {start.isolation}") for start in starts]
    return ReportContext(
        manifest=manifest,
        manifest_digest=manifest_digest,
        dataset_digest=sha256_digest(dataset),
        rows=parse_lines(dataset, LogicalRunRow, "dataset.jsonl"),
        analysis=analysis,
        isolation=weakest_isolation(statements),
        incidents=tuple(incidents),
        facts=tuple(facts),
        started_at=started[0].at if started else None,
        ended_at=ends[-1] if ends else None,
        versions=versions,
    )


def weakest_isolation(statements: Sequence[Statement]) -> Literal["vm", "container"]:
    """The weakest that any controller of the round reported; of a round that never started, "container"."""
    starts = [claim(each, bodies.RoundStarted) for each in statements if each.kind is StatementKind.ROUND_STARTED]
    return "vm" if starts and all(start.isolation == "vm" for start in starts) else "container"


def _refuted(statements: Sequence[Statement]) -> Iterator[Incident]:
    """Every logical run whose records the provider's usage report contradicts."""
    for each in statements:
        if each.kind is StatementKind.RUN_RECONCILED:
            body = claim(each, bodies.RunReconciled)
            if body.finding in REFUTED:
                text = f"{body.finding.value}: {body.problems[0]}"
                yield Incident(at=each.at, event=each.kind.value, subject=each.subject, text=text)


def _money_facts(statements: Sequence[Statement]) -> Iterator[Fact]:
    """What the sum of money is, and what the provider's report said of it."""
    for each in statements:
        if each.kind is StatementKind.ROUND_SETTLED:
            settled = claim(each, bodies.RoundSettled)
            told = f"{settled.usd} USD" if settled.usd is not None else f"at least {settled.floor_usd} USD"
            yield Fact(name="settlement", value=f"{told} ({settled.figure.value})")
    kind = StatementKind.RUN_RECONCILED
    findings = Counter(claim(each, bodies.RunReconciled).finding.value for each in statements if each.kind is kind)
    if findings:
        told = ", ".join(f"{findings[name]} {name}" for name in sorted(findings))
        yield Fact(name="provider's usage report, logical runs", value=told)
