"""Everything a report is made from. The same context gives the same bytes."""

from __future__ import annotations

from typing import Literal

from controller.domain.dataset import LogicalRunRow
from controller.domain.ids import Digest
from controller.domain.instant import InstantMs
from controller.domain.plan import RoundManifest
from controller.domain.record import Record
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
    check_command: str = "fairtrial check BUNDLE --key PUBLISHER.pub"
    analyse_command: str = "fairtrial analyse BUNDLE/dataset.jsonl --protocol harness-round --json"
