"""The public numbers of each protocol, and its own conditions of a release."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.conductor.recompute import RoundRecompute
from controller.domain.aggregate import Aggregate
from controller.domain.ids import sha256_digest
from controller.errors import NotCanonical
from controller.evidence.canonical import canonical, parse
from controller.protocols import releases
from controller.protocols.cost_index.estimates import CostIndexAnalysis
from controller.protocols.harness_round.estimates import Analysis
from controller.protocols.optimizer_matrix.estimates import OptimizerAnalysis
from tests.world.recorded_round import Protocol, RecordedRound, conducted, inputs

PROTOCOLS: tuple[Protocol, ...] = ("harness-round", "cost-index", "optimizer-matrix")


@pytest.fixture(scope="module", params=PROTOCOLS)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RecordedRound:
    protocol: Protocol = request.param
    directory: Path = tmp_path_factory.mktemp(protocol) / "small"
    return conducted(directory, given=inputs(protocol=protocol, replicates=1 if protocol == "optimizer-matrix" else 2))


def files(found: RecordedRound) -> tuple[bytes, bytes]:
    dataset, analysis = (found.directory / name for name in ("dataset.jsonl", "analysis.json"))
    return dataset.read_bytes(), analysis.read_bytes()


def test_the_aggregate_names_its_sources_and_no_run_task_or_round(found: RecordedRound) -> None:
    dataset, analysis = files(found)
    data = RoundRecompute().aggregate(found.manifest, dataset, analysis)
    made = parse(data, Aggregate)
    assert (made.protocol, made.kind) == (found.manifest.protocol, "rehearsal")
    assert made.sources.model_dump() == {
        "manifest": found.manifest_digest,
        "corpus_root": found.manifest.corpus_root,
        "dataset": sha256_digest(dataset),
        "analysis": sha256_digest(analysis),
    }
    text = data.decode()
    hidden = [task.id for task in found.manifest.tasks] if found.manifest.protocol != "cost-index" else []
    hidden += [run.id for run in found.manifest.schedule] + ["att-", '"small"']
    assert not [name for name in hidden if f'"{name}"' in text or (name == "att-" and name in text)]


def test_the_aggregates_numbers_are_the_analysis_own(found: RecordedRound) -> None:
    dataset, data = files(found)
    metrics = {(each.of, each.name): each for each in releases.aggregate(found.manifest, dataset, data).metrics}
    analysis = releases.parse_analysis(found.manifest, data)
    match analysis:
        case Analysis():
            arm = analysis.arm("alpha")
            rate = metrics["alpha", "success_rate"]
            assert (rate.value, rate.low, rate.high) == tuple(
                getattr(arm.success_rate, name) for name in ("value", "low", "high")
            )
            assert metrics["alpha", "usd_total"].value == arm.usd_total
            assert metrics["alpha against beta", "cost_ratio"].value == analysis.pairs[0].cost.value
        case CostIndexAnalysis():
            cell = analysis.cells[0]
            cost = metrics[f"{cell.outcome} on {cell.stack}", "cost_per_outcome"]
            assert (cost.value, cost.low) == (cell.cost_per_outcome.value, cell.cost_per_outcome.low)
            assert metrics[analysis.totals[0].stack, "instances"].value == str(analysis.totals[0].instances)
        case OptimizerAnalysis():
            policy = analysis.policy("adaptive")
            assert metrics["adaptive", "verified"].value == str(policy.verified)
            assert metrics["adaptive", "cost_total"].value == policy.costs.total
            assert metrics["matrix", "funded-target"].value == str(int(analysis.funded.passed))
    assert len(metrics) == len(releases.aggregate(found.manifest, dataset, data).metrics), "no metric twice"


def test_only_what_the_protocol_itself_asks_forbids_a_release(found: RecordedRound) -> None:
    _, data = files(found)
    gates = releases.release_gates(found.manifest, data)
    match releases.parse_analysis(found.manifest, data):
        case Analysis():
            assert gates == (), "a harness-round is released whatever it found"
        case CostIndexAnalysis() as index:
            assert [gate.split(":")[0] for gate in gates] == [gate.name for gate in index.gates if not gate.passed]
            assert "measured" in [gate.split(":")[0] for gate in gates]
            passed = tuple(gate.model_copy(update={"passed": True}) for gate in index.gates)
            assert releases.release_gates(found.manifest, canonical(index.model_copy(update={"gates": passed}))) == ()
        case OptimizerAnalysis() as matrix:
            assert [gate.split(":")[0] for gate in gates] == ["public-random selection", "complete matrix"]
            ladder = tuple(step.model_copy(update={"shown": True}) for step in matrix.ladder)
            whole = matrix.model_copy(update={"shape": matrix.frozen_shape, "ladder": ladder})
            assert not whole.funded.passed
            assert releases.release_gates(found.manifest, canonical(whole)) == (), "a failed target is no obstacle"


def test_the_analysis_of_another_protocol_is_refused(found: RecordedRound) -> None:
    other = next(name for name in PROTOCOLS if name != found.manifest.protocol)
    manifest = found.manifest.model_copy(update={"protocol": other})
    with pytest.raises(NotCanonical):
        releases.aggregate(manifest, *files(found))
