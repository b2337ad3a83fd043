"""What the three protocols want fixed, published or committed before the first run, item by item, and where it stands.

The manifests are those that the demos' plans give, with task entries and image digests that no machine had to make.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.domain.plan import RoundManifest
from controller.evidence.bundle import MANIFEST_ENVELOPE
from controller.evidence.canonical import canonical
from controller.evidence.envelope import MANIFEST_TYPE, check
from controller.freeze import FreezeInputs, freeze, read_plan
from controller.freeze.rules import manifest_of
from controller.settings import PROJECT, Settings
from controller.wiring.freezing import gather
from tests.world.clock import StepClock
from tests.world.recorded_round import START, digest
from tests.world.reports import task_entry
from tests.world.signer import FixedSigner

IMAGES: Final = ("vm-runner", "vm-verifier", "egress-proxy", "harness-codex", "harness-mini-swe-agent")
REHEARSAL: Final = "a rehearsal needs none"

# The protocol's item, the path in the manifest that satisfies it, and why its value may be empty, if it may.
Item = tuple[str, str, str]
HARNESS_ROUND: Final[tuple[Item, ...]] = (
    # Fixed for every counted run
    ("the model, resolved to one exact lane", "lanes[].model", ""),
    ("a direct provider", "lanes[].provider", ""),
    ("a direct provider: where requests go", "lane_policy.upstreams.*", ""),
    ("fallback disabled", "lane_policy.fallback", ""),
    ("upstream account rate card by digest", "rate_card_digest", ""),
    ("retail simulation policy by digest", "retail_policy_digest", ""),
    ("the task prompt", "tasks[].prompt_digest", ""),
    ("the repository bundle", "tasks[].base_digest", ""),
    ("runner image family", "machines.runner", ""),
    ("4 vCPU", "sandbox_limits.vm_cpus", ""),
    ("8 GiB", "sandbox_limits.vm_memory_bytes", ""),
    ("harness capped at 3 vCPU", "sandbox_limits.cpus", ""),
    ("6 GiB", "sandbox_limits.memory_bytes", ""),
    ("1,024 processes", "sandbox_limits.processes", ""),
    ("20 GiB writable disk", "sandbox_limits.disk_bytes", ""),
    ("30-minute hard agent timeout", "sandbox_limits.agent_seconds", ""),
    ("at most 60 accepted model requests per attempt", "spend_limits.requests_per_attempt", ""),
    ("180 per logical run", "spend_limits.requests_per_logical_run", ""),
    ("cost ceiling of $1.00 per attempt", "spend_limits.usd_per_attempt", ""),
    ("$3.00 per logical run", "spend_limits.usd_per_logical_run", ""),
    ("offline network policy with its exceptions", "network_policy", ""),
    ("upload grants are exact", "artifact_limits.tree_bytes_max", ""),
    ("the verification image", "machines.verifier", ""),
    ("the hidden verifier", "tasks[].verifier_digest", ""),
    ("the scoring rubric", "rubric.gates[]", ""),
    ("three independent repeats", "replicates", ""),
    ("no persistent home directory", "clean_start.home", ""),
    ("no session from a prior run", "clean_start.sessions", ""),
    ("no compiler output from a prior run", "clean_start.compiler_output", ""),
    ("no cache from a prior run", "clean_start.caches", ""),
    # Published the moment a round starts
    ("model alias", "lanes[].observed_models[]", ""),
    ("lane policy", "lane_policy.request_off_lane", ""),
    ("proxy build: the meter is in our package", "software_digest", ""),
    ("proxy build: the egress proxy", "images.egress-proxy", ""),
    ("public tasks", "tasks[].task_digest", ""),
    ("their verifiers", "tasks[].verifier_digest", ""),
    ("sealed-task metadata", "tasks[].visibility", ""),
    ("corpus Merkle root", "corpus_root", ""),
    ("harness versions", "arms[].harness_version", ""),
    ("adapter versions: they are of our version", "software", ""),
    ("adapter checksums", "arms[].adapter_digest", ""),
    ("harness images", "arms[].image_digest", ""),
    ("sanitized full configs: files", "launch_contracts.*.files.*", ""),
    ("sanitized full configs: environment", "launch_contracts.*.env.*", ""),
    ("launch contract", "launch_contracts.*.argv[]", ""),
    ("protocol path", "arms[].dialect", ""),
    ("runner image digest", "images.vm-runner", ""),
    ("verifier image digest", "images.vm-verifier", ""),
    ("network policy by digest", "network_policy_digest", ""),
    ("metric definitions", "analysis.metrics.*", ""),
    ("statistical method: intervals", "analysis.intervals", ""),
    ("statistical method: resamples", "analysis.resamples", ""),
    ("statistical method: comparisons", "analysis.comparisons[]", ""),
    ("statistical method: margin", "analysis.margin_points", ""),
    ("statistical method: saving", "analysis.saving_percent", ""),
    ("randomization seed", "seed", ""),
    ("stop rules", "stop_rules.events[]", ""),
    ("invalidation rules", "invalidation.causes[]", ""),
    ("known shim qualification status", "arms[].shims[].status", ""),
    # Committed before running, and the retry rule
    ("analysis plan", "analysis.generator", ""),
    ("schedule", "schedule[].position", ""),
    ("exclusions", "exclusions", "nothing was left out"),
    ("spend", "envelope.usd", ""),
    ("attempts at most", "retry.attempts_max", ""),
    ("retryable ends", "retry.retried[]", ""),
    ("who may approve the report", "approvers", REHEARSAL),
    ("which arm is ours", "arms[].is_own", ""),
)
COST_INDEX: Final[tuple[Item, ...]] = (
    ("versioned manifest", "methodology", ""),
    ("outcomes", "tasks[].stratum", ""),
    ("distinct stacks", "arms[].id", ""),
    ("identical task instances for every stack", "schedule[].task", ""),
    ("immutable source hashes", "tasks[].base_digest", ""),
    ("grader hashes", "tasks[].verifier_digest", ""),
    ("evaluator-owned held-out fixture hashes", "fixtures.*", ""),
    ("model IDs", "lanes[].model", ""),
    ("provider IDs", "lanes[].provider", ""),
    ("settings", "launch_contracts.*.env.*", ""),
    ("tools", "launch_contracts.*.argv[]", ""),
    ("time limits", "sandbox_limits.agent_seconds", ""),
    ("step limits", "spend_limits.requests_per_attempt", ""),
    ("retry policy", "retry.retried[]", ""),
    ("existing aggregate budget", "envelope.usd", ""),
    ("exclusions", "exclusions[]", ""),
    ("sample sizes", "sample_sizes.*", ""),
    ("fixture clusters", "tasks[].cluster", ""),
    ("boundary of charges", "boundary.counted[]", ""),
    ("charges outside the boundary, disclosed", "boundary.uncounted.*", ""),
    ("currency", "boundary.currency", ""),
    ("dated, sourced conversion rule", "boundary.conversions", "everything is metered in the one currency"),
    ("Wilson interval and its z", "uncertainty.wilson_z", ""),
    ("paired cluster bootstrap", "uncertainty.otherwise", ""),
    ("10,000 replicates", "uncertainty.resamples", ""),
    ("generator and version", "uncertainty.generator", ""),
    ("seed", "seed", ""),
    ("nearest-rank percentiles", "uncertainty.bounds", ""),
    ("infinite replicates kept", "uncertainty.without_success", ""),
    ("at least two clusters", "uncertainty.clusters_min", ""),
    ("human approval of the exact report", "approvers", REHEARSAL),
)
OPTIMIZER: Final[tuple[Item, ...]] = (
    ("repositories", "tasks[].cluster", ""),
    ("pinned revisions", "tasks[].base_digest", ""),
    ("scenarios", "tasks[].id", ""),
    ("categories, the preregistered strata", "strata[]", ""),
    ("policies", "policies[].arm", ""),
    ("how each policy routes", "policies[].routing", ""),
    ("which policy is which", "roles.frontier", ""),
    ("repetitions", "replicates", ""),
    ("runs", "schedule[].id", ""),
    ("runtime families", "candidates[].harness", ""),
    ("capability tiers", "candidates[].tier", ""),
    ("candidate executor set", "candidates[].lane", ""),
    ("holdouts", "tasks[].visibility", ""),
    ("same task, setup and prompt", "tasks[].prompt_digest", ""),
    ("same verifier", "tasks[].verifier_digest", ""),
    ("allowed tools", "launch_contracts.*.argv[]", ""),
    ("timeout", "sandbox_limits.agent_seconds", ""),
    ("attempts", "retry.attempts_max", ""),
    ("agent limit", "spend_limits.requests_per_attempt", ""),
    ("probe: files", "probe.files_max", ""),
    ("probe: bytes", "probe.bytes_max", ""),
    ("probe: duration", "probe.duration_ms_max", ""),
    ("probe: real directories, no symlink", "probe.directories", ""),
    ("probe: no model call", "probe.model_calls_max", ""),
    ("probe: what it reads", "probe.reads[]", ""),
    ("absolute verified completion", "thresholds.absolute_completion", ""),
    ("completion relative to a valid frontier", "thresholds.relative_completion", ""),
    ("frontier validity in every stratum", "thresholds.frontier_stratum", ""),
    ("total cost saved", "thresholds.total_saving", ""),
    ("held-out median cost saved", "thresholds.held_out_median_saving", ""),
    ("zero false passes", "thresholds.false_passes_max", ""),
    ("unknown cost saves nothing", "thresholds.unknown_cost", ""),
    ("pricing basis", "candidates[].billing_basis", ""),
    ("frozen prices", "rate_card_digest", ""),
    ("cap on cells", "envelope.logical_runs", ""),
    ("cap on model attempts", "envelope.attempts", ""),
    ("cap on timeout minutes", "envelope.timeout_minutes", ""),
    ("selection request and record digests", "selection", "a rehearsal selects no holdout"),
    ("calibration inputs, apart", "calibration.tasks[].task_digest", ""),
    ("root of the calibration inputs", "calibration.root", ""),
    ("pilot inputs, apart", "pilot.tasks", "the demo had no pilot"),
    ("root of the pilot inputs", "pilot.root", ""),
    ("root of the matrix inputs", "corpus_root", ""),
)
CASES: Final = [
    (name, *item)
    for name, items in (
        ("demo.yaml", HARNESS_ROUND),
        ("demo-cost-index.yaml", COST_INDEX),
        ("demo-optimizer-matrix.yaml", OPTIMIZER),
    )
    for item in items
]
EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


@cache
def gathered(name: str) -> FreezeInputs:
    plan_path = PROJECT / "policies" / "rounds" / name
    plan = read_plan(plan_path)
    earlier = plan.optimizer_matrix.calibration if plan.optimizer_matrix else ()
    tasks, calibration = ([task_entry(Path(path).name) for path in paths] for paths in (plan.tasks, earlier))
    return gather(
        Settings(),
        plan,
        plan_path,
        tasks=tasks,
        calibration=calibration,
        fixtures={task.id: digest(task.id) for task in tasks},
        images={name: digest(name) for name in IMAGES},
    )


@cache
def frozen(name: str) -> RoundManifest:
    return manifest_of(gathered(name), at=START)


def found_at(value: Any, path: str) -> Iterator[Any]:
    """Every value at a path; a part that ends in `[]` means every item of a list, `*` every value of an object.

    Raises LookupError for a part that is not there, and for a list or object without anything to look into.
    """
    if not path:
        yield value
        return
    part, _, rest = path.partition(".")
    name = part.removesuffix("[]")
    inner = list(value.values()) if name == "*" else [value[name]]
    if part.endswith("[]"):
        inner = [item for each in inner for item in each]
    if not inner:
        raise LookupError(path)
    for each in inner:
        yield from found_at(each, rest)


@pytest.mark.parametrize(("plan", "item", "path", "may_be_empty"), CASES)
def test_each_item_stands_in_the_manifest(plan: str, item: str, path: str, may_be_empty: str) -> None:
    fields = json.loads(canonical(frozen(plan)))
    values = list(found_at(fields, path))
    assert values, item
    if not may_be_empty:
        assert all(value not in EMPTY for value in values), f"{item}: {path} is empty, and no reason is given"


def test_an_absent_or_an_empty_path_is_noticed() -> None:
    fields = {"a": [{"b": 1}, {}], "c": {}, "d": []}
    for path in ("a[].b", "c.*", "d[]", "e"):
        with pytest.raises(LookupError):
            list(found_at(fields, path))
    assert list(found_at({"a": [{"b": 1}, {"b": ""}]}, "a[].b")) == [1, ""]


def test_the_manifest_is_published_with_its_signature(tmp_path: Path) -> None:
    signer = FixedSigner()
    freeze(gathered("demo.yaml"), tmp_path / "round", signer, StepClock(START), files=LocalFiles())
    envelope = (tmp_path / "round" / MANIFEST_ENVELOPE).read_bytes()
    payload = check(envelope, MANIFEST_TYPE, signer.ring, MANIFEST_ENVELOPE)
    assert payload == (tmp_path / "round" / "manifest.json").read_bytes()


def test_placeholders_stand_for_prompt_and_token_and_no_secret_is_published() -> None:
    fields = json.loads(canonical(frozen("demo.yaml")))
    contracts = json.dumps(fields["launch_contracts"])
    assert "{prompt}" in contracts and "{run-token}" in contracts
    assert str(PROJECT) not in json.dumps(fields)


def test_the_shims_are_those_of_the_arms_settings() -> None:
    shims = {arm.id: [shim.name for shim in arm.shims] for arm in frozen("demo.yaml").arms}
    assert shims == {"codex": ["meter", "relay"], "mini-swe-agent": ["meter", "relay", "fairtrial_client"]}
