"""Rounds of cost-index and optimizer-matrix, conducted without machines: dataset, analysis, report, bundle, check."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.analyse.frozen import analyse_frozen
from controller.conductor.dataset import dataset_rows
from controller.conductor.recompute import RoundRecompute
from controller.domain import bodies
from controller.domain.dataset import LogicalRunRow, Proofs
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.outcome import EndKind
from controller.domain.statement import Statement, StatementKind
from controller.errors import InvalidInput, NotPublishable
from controller.evidence import bundle
from controller.evidence.canonical import parse_lines
from controller.evidence.check import check
from controller.protocols.cost_index.estimates import CostIndexAnalysis
from controller.protocols.optimizer_matrix.estimates import OptimizerAnalysis
from controller.publish.report_tables import render_tables
from tests.world.recorded_round import STORIES, WALL_MS, Protocol, RecordedRound, Try, conducted, inputs
from tests.world.signer import FixedSigner

K = StatementKind
OTHERS: tuple[Protocol, ...] = ("cost-index", "optimizer-matrix")


def _round(
    directory: Path, protocol: Protocol, stories: Mapping[int, tuple[Try, ...]] = STORIES, **changes: Any
) -> RecordedRound:
    """Eight logical runs of a cost index, or six of a matrix."""
    given = inputs(protocol=protocol, replicates=1 if protocol == "optimizer-matrix" else 2)
    found = conducted(directory / "small", stories=stories, given=given.model_copy(update=changes))
    found.report = report(found)
    return found


def rows(found: RecordedRound) -> tuple[LogicalRunRow, ...]:
    return dataset_rows(found.manifest, found.manifest_digest, found.statements)


def analysis(found: RecordedRound) -> CostIndexAnalysis | OptimizerAnalysis:
    made, _ = analyse_frozen(found.manifest, (found.directory / bundle.DATASET).read_bytes())
    assert isinstance(made, CostIndexAnalysis | OptimizerAnalysis)
    return made


def report(found: RecordedRound, isolation: str = "vm") -> str:
    dataset = sha256_digest((found.directory / bundle.DATASET).read_bytes())
    return render_tables(found.manifest, found.manifest_digest, dataset, analysis(found), isolation=isolation)


@pytest.mark.parametrize("protocol", OTHERS)
def test_a_round_of_any_protocol_is_published_and_checked(tmp_path: Path, protocol: Protocol) -> None:
    release = _round(tmp_path, protocol).publish()
    files = LocalFiles().read_directory(release.path, bytes_max=bundle.BUNDLE_BYTES_MAX)
    checked = check(files, RoundRecompute(), keys=FixedSigner().ring)
    assert checked.passed and checked.kind == "rehearsal"
    found = json.loads(files[bundle.ANALYSIS])
    assert (found["protocol"], found["plan_digest"]) == (protocol, found["manifest_digest"])
    assert files[bundle.DATASET].count(b'"schema_version":"fairtrial.dataset/2"') == files[bundle.DATASET].count(b"\n")


@pytest.mark.parametrize("protocol", OTHERS)
@pytest.mark.parametrize("name", [bundle.DATASET, bundle.ANALYSIS])
def test_a_changed_result_is_not_published(tmp_path: Path, protocol: Protocol, name: str) -> None:
    found = _round(tmp_path, protocol)
    path = found.directory / name
    path.write_bytes(path.read_bytes().replace(b'"rehearsal"', b'"measured"'))
    with pytest.raises(NotPublishable, match=rf"check step 9 .*{name} does not follow"):
        found.publish()


def test_the_index_counts_what_happened_and_is_not_qualified(tmp_path: Path) -> None:
    found = analysis(_round(tmp_path, "cost-index"))
    assert isinstance(found, CostIndexAnalysis)
    assert sum(cell.successes for cell in found.cells) == 4 and sum(cell.unknown for cell in found.cells) == 1
    gates = {gate.name: gate.passed for gate in found.gates}
    assert gates["frozen-plan"] and gates["all-cells"] and gates["same-instances"]
    assert not gates["measured"] and not gates["known-outcomes"] and not gates["settled-spend"]
    assert found.counted == ("model",)
    assert "compute charges: our own machines" in found.exclusions
    assert found.conclusion.startswith("Rehearsal, not a measurement. This comparison is not qualified")


def test_the_matrix_reads_the_proofs_of_the_log(tmp_path: Path) -> None:
    found = analysis(_round(tmp_path, "optimizer-matrix"))
    assert isinstance(found, OptimizerAnalysis)
    assert sum(policy.verified for policy in found.policies) == 2
    assert sum(policy.unproven for policy in found.policies) == 0
    assert found.shape.runs == 6 and not found.funded.passed
    assert "No frozen plan was given" not in " ".join(found.limitations)


def test_latency_is_from_the_first_intent_to_the_last_verdict(tmp_path: Path) -> None:
    found = _round(tmp_path, "cost-index")
    for row, run in zip(rows(found), found.manifest.schedule, strict=True):
        ids = [attempt.attempt_id for attempt in row.attempts]
        began = next(s.at for s in found.statements if s.kind is K.ATTEMPT_INTENDED and s.subject == ids[0])
        ends = [s.at for s in found.statements if s.subject == ids[-1] and s.kind is K.VERDICT]
        assert row.latency_ms == ends[-1] - began >= len(ids) * WALL_MS, run.id


def test_a_run_that_was_never_judged_ends_with_its_result(tmp_path: Path) -> None:
    lost = Try(end=EndKind.INFRASTRUCTURE, passes=None, requests=())
    found = _round(tmp_path, "cost-index", {**STORIES, 0: (lost, lost, lost)})
    row = rows(found)[0]
    results = [s for s in found.statements if s.kind is K.RESULT_ACKNOWLEDGED]
    begun = next(s for s in found.statements if s.kind is K.ATTEMPT_INTENDED)
    assert row.latency_ms == results[2].at - begun.at
    assert row.proofs == Proofs(observed_model=None, receipt=True)  # no request, so no answer proves a model


def _altered(found: RecordedRound, kind: StatementKind, change: Callable[[Statement], Statement]) -> LogicalRunRow:
    place = next(i for i, s in enumerate(found.statements) if s.kind is kind)
    found.statements[place] = change(found.statements[place])
    return rows(found)[0]


def test_a_clock_that_was_set_back_leaves_the_latency_unknown(tmp_path: Path) -> None:
    found = _round(tmp_path, "cost-index")
    row = _altered(found, K.VERDICT, lambda s: s.model_copy(update={"at": InstantMs(s.at - 30_000)}))
    assert row.latency_ms is None


@pytest.mark.parametrize(
    ("kind", "changes", "proofs"),
    [
        (K.ATTEMPT_SETTLED, {}, Proofs(observed_model=True, receipt=True)),
        (K.ATTEMPT_SETTLED, {"off_lane_models": {"cheap": 1}}, Proofs(observed_model=False, receipt=True)),
        (K.ATTEMPT_SETTLED, {"valid": False}, Proofs(observed_model=None, receipt=True)),
        (K.ISOLATION_RECEIPT, {"mismatches": ["route"]}, Proofs(observed_model=True, receipt=False)),
        (K.ISOLATION_RECEIPT, {"receipt_digest": None}, Proofs(observed_model=True, receipt=None)),
    ],
)
def test_proofs_say_no_more_than_the_log(
    tmp_path: Path, kind: StatementKind, changes: dict[str, Any], proofs: Proofs
) -> None:
    found = _round(tmp_path, "optimizer-matrix")
    assert _altered(found, kind, lambda s: s.model_copy(update={"body": {**s.body, **changes}})).proofs == proofs


@pytest.mark.parametrize("protocol", OTHERS)
def test_a_run_that_never_happened_claims_nothing(tmp_path: Path, protocol: Protocol) -> None:
    found = _round(tmp_path, protocol)
    found.statements = [s for s in found.statements if s.kind is not K.RUN_SCORED]
    for row in rows(found):
        assert (row.outcome, row.usd, row.latency_ms, row.proofs) == ("missing", None, None, None)


def test_a_matrix_with_a_missing_run_has_no_report(tmp_path: Path) -> None:
    found = _round(tmp_path, "optimizer-matrix")
    found.statements = [s for s in found.statements if s.kind is not K.RUN_SCORED]
    with pytest.raises(InvalidInput, match="so there is no report"):
        found.analyse()


def test_rounds_are_never_pooled(tmp_path: Path) -> None:
    first = _round(tmp_path / "a", "cost-index")
    plan = inputs(protocol="cost-index").plan.model_copy(update={"title": "The same again"})
    second = _round(tmp_path / "b", "cost-index", plan=plan)
    lines = [(each.directory / bundle.DATASET).read_bytes().splitlines(keepends=True) for each in (first, second)]
    with pytest.raises(InvalidInput, match="rounds are never pooled"):
        analyse_frozen(first.manifest, b"".join(lines[0][:4] + lines[1][4:]))


@pytest.mark.parametrize("protocol", OTHERS)
def test_the_report_shows_every_cell_and_gate_and_names_no_run(tmp_path: Path, protocol: Protocol) -> None:
    found = _round(tmp_path, protocol)
    made, page = analysis(found), found.report
    assert "Rehearsal: scripted model, not a measurement" in page
    assert made.conclusion in page
    expected = (
        [f"{cell.outcome} / {cell.stack}" for cell in made.cells] + [gate.name for gate in made.gates]
        if isinstance(made, CostIndexAnalysis)
        else [f"{policy.policy} / small" for policy in made.policies]
        + [gate.name for gate in (made.frontier, made.funded, made.historical)]
        + [step.name for step in made.ladder]
    )
    assert all(text in page for text in expected)
    attempts = [attempt.attempt_id for row in parse_rows(found) for attempt in row.attempts]
    assert not any(name in page for name in (*attempts, *(run.id for run in found.manifest.schedule)))
    assert "Container isolation" in report(found, "container") and "Container isolation" not in page


def parse_rows(found: RecordedRound) -> tuple[LogicalRunRow, ...]:
    return parse_lines((found.directory / bundle.DATASET).read_bytes(), LogicalRunRow, bundle.DATASET)


def test_hostile_titles_stay_text(tmp_path: Path) -> None:
    plan = inputs(protocol="cost-index").plan.model_copy(update={"title": "<script>alert(1)</script>\u202e"})
    page = _round(tmp_path, "cost-index", plan=plan).report
    assert "<script" not in page and "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\ufffd" in page


def test_an_index_without_a_success_names_no_cost(tmp_path: Path) -> None:
    found = _round(tmp_path, "cost-index", dict.fromkeys(range(8), (Try(passes=False),)))
    made = analysis(found)
    assert isinstance(made, CostIndexAnalysis)
    assert {cell.cost_per_outcome.value for cell in made.cells} == {"unbounded"}
    assert found.report.count("undefined: no verified outcome") == len(made.cells) + len(made.totals)


def test_a_stopped_index_is_published_with_its_missing_runs(tmp_path: Path) -> None:
    found = _round(tmp_path, "cost-index", {place: (Try(),) for place in range(3)})
    place = next(i for i, s in enumerate(found.statements) if s.kind is K.ROUND_SETTLED)
    closing = found.statements[place:]
    del found.statements[place:]
    found.log(K.ROUND_STOPPED, "small", bodies.RoundStopped(rule="rate-card", detail="the meter prices by another"))
    found.log(K.ROUND_SETTLED, "small", bodies.RoundSettled.model_validate_json(json.dumps(closing[0].body)))
    found.log(K.ROUND_CLOSED, "small", bodies.RoundClosed.model_validate_json(json.dumps(closing[1].body)))
    found.analyse()
    found.report = report(found)
    assert found.publish().report.passed
    made = analysis(found)
    assert isinstance(made, CostIndexAnalysis)
    assert sum(cell.unknown for cell in made.cells) == 5
