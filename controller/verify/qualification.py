"""Is a task fit to be frozen? Its gold patch must pass every time, and the bare base must fail every time."""

from __future__ import annotations

from typing import Final

from controller.domain.globs import matches_any
from controller.domain.outcome import Verdict
from controller.domain.record import Record
from controller.domain.task import TaskBundle
from controller.domain.tree_stream import HarvestedTree
from controller.ports.patches import PatchTool
from controller.ports.pool import Sandbox
from controller.verify import step

RUNS: Final = 3


class Qualification(Record):
    """What was seen. A task is fit when `faults` is empty."""

    task: str
    gold_passed: int  # of RUNS
    empty_failed: int  # of RUNS
    gold_changed: tuple[str, ...]
    cases: int
    failing_cases: tuple[str, ...]  # the hidden cases that the bare base fails
    faults: tuple[str, ...]

    @property
    def is_fit(self) -> bool:
        return not self.faults


def qualify(
    sandbox: Sandbox, bundle: TaskBundle, patches: PatchTool, *, site: step.JudgeSite | None = None
) -> Qualification:
    """Judge the gold patch and the bare base `RUNS` times each.

    Scoring leases a fresh machine for every verdict; here one leased verifier machine serves all six runs, each in a
    fresh directory, because both trees are ours. Raises InvalidInput when the gold patch does not apply, InvalidTask
    when the case file is malformed, SandboxLost when the machine fails.
    """
    where = site or step.JudgeSite()
    after = dict(patches.apply_check(bundle.base, bundle.gold_patch))
    cases = step.count_cases(bundle)
    verdicts: list[Verdict] = []
    failing: list[tuple[str, ...]] = []
    for _ in range(RUNS):
        verdict, _ = step.verify(sandbox, bundle, HarvestedTree(tree=after), patches, site=where)
        verdicts.append(verdict)
        report, _ = step.run_judge(sandbox, bundle, where, patch=None, after=bundle.base)
        failing.append(report.failed)
    sandbox.exec(["rm", "-rf", "--", where.directory])
    gold_passed = sum(verdict.passed for verdict in verdicts)
    empty_failed = sum(bool(failed) for failed in failing)
    changed = verdicts[0].changed_paths
    faults = []
    if gold_passed < RUNS:
        gates = [gate for verdict in verdicts for gate in verdict.gates if not gate.passed]
        faults.append(f"gold.patch passed {gold_passed} of {RUNS} times; {gates[0].name}: {gates[0].detail}")
    if empty_failed < RUNS:
        faults.append(f"the bare base failed only {empty_failed} of {RUNS} times, so the cases do not show the bug")
    if len(set(failing)) > 1:
        faults.append("the bare base fails different cases each time, so the verifier is not deterministic")
    if touched := [path for path in changed if matches_any(path, bundle.protected)]:
        faults.append(f"gold.patch changes protected paths: {', '.join(touched)}")
    return Qualification(
        task=bundle.entry.id,
        gold_passed=gold_passed,
        empty_failed=empty_failed,
        gold_changed=changed,
        cases=cases,
        failing_cases=failing[0],
        faults=tuple(faults),
    )
