"""A report of a conducted round takes everything from the log, the dataset and the analysis."""

from __future__ import annotations

from pathlib import Path

from controller.analyse.plan import plan_of_manifest, plan_of_rows
from controller.domain import bodies
from controller.domain.provider_report import Figure, Finding, ProviderEvidence
from controller.domain.statement import StatementKind
from controller.protocols.harness_round.estimates import Analysis
from controller.protocols.harness_round.manifest import HarnessRoundManifest
from controller.publish.report import ReportContext, context_of_round, render_report
from tests.world.recorded_round import RecordedRound, conducted


def context(found: RecordedRound) -> ReportContext:
    return context_of_round(
        found.manifest,
        found.manifest_digest,
        dataset=(found.directory / "dataset.jsonl").read_bytes(),
        analysis=Analysis.model_validate_json((found.directory / "analysis.json").read_bytes()),
        statements=found.statements,
    )


def test_the_log_gives_isolation_times_and_machines(tmp_path: Path) -> None:
    found = conducted(tmp_path / "small")
    made = context(found)
    starts = [each for each in found.statements if each.kind is StatementKind.ROUND_STARTED]
    assert (made.isolation, made.started_at) == ("vm", starts[0].at)
    assert made.ended_at == found.statements[-1].at
    assert len(made.rows) == len(found.manifest.schedule)
    page = render_report(made)
    assert "Rehearsal: scripted model, not a measurement" in page
    assert all(attempt.attempt_id in page for row in made.rows for attempt in row.attempts)


def test_the_command_it_names_repeats_the_analysis(tmp_path: Path) -> None:
    found = conducted(tmp_path / "small")
    made = context(found)
    assert f"--seed {found.manifest.seed}" in render_report(made)
    assert isinstance(found.manifest, HarnessRoundManifest)
    assert plan_of_rows(made.rows, seed=found.manifest.seed) == plan_of_manifest(found.manifest)


def test_stops_halts_and_decisions_are_told(tmp_path: Path) -> None:
    found = conducted(tmp_path / "small")
    run = found.manifest.schedule[0].id
    halted = bodies.CellHalted(attempt_id="att-1", number=2, reason="the machine is gone", requests=3)
    found.log(StatementKind.CELL_HALTED, run, halted)
    found.log(StatementKind.OPERATOR_ACT, "small", bodies.OperatorAct(act="stop", note="the fan is loud"))
    found.log(StatementKind.ROUND_STOPPED, "small", bodies.RoundStopped(rule="spend-cap", detail="$3 of $3"))
    page = render_report(context(found))
    for text in ("attempt 2: the machine is gone", "stop: the fan is loud", "spend-cap: $3 of $3"):
        assert text in page
    assert "no stop rule fired" not in page


def test_a_round_that_never_started_proves_no_virtual_machine(tmp_path: Path) -> None:
    found = conducted(tmp_path / "small")
    found.statements = [each for each in found.statements if each.kind is not StatementKind.ROUND_STARTED]
    assert context(found).isolation == "container"


def test_what_the_sum_of_money_is_and_what_contradicts_it_are_told(tmp_path: Path) -> None:
    found = conducted(tmp_path / "small")
    provider = ProviderEvidence(reports=(), covered=(), dedicated=True, usage=())
    refuted = bodies.RunReconciled(
        provider=provider,
        finding=Finding.PROVIDER_LESS,
        problems=("the provider has 1 fewer out than the records",),
        resolved=(),
        accounts={},
        outcome="invalid",
        usd=None,
        floor_usd="0",
        figure=Figure.FLOOR,
    )
    made = context(found)
    found.log(StatementKind.RUN_RECONCILED, found.manifest.schedule[0].id, refuted)
    facts = {fact.name: fact.value for fact in context(found).facts}
    assert facts["settlement"].startswith("at least 0.0")
    assert facts["settlement"].endswith("USD (floor)")
    assert facts["provider's usage report, logical runs"] == "1 provider-less"
    assert "provider-less: the provider has 1 fewer out than the records" in render_report(context(found))
    assert "provider" not in {fact.name.split("'")[0] for fact in made.facts}
