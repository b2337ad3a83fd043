"""The gates of a verdict, in order, as pure functions of trees and of the judge's report."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import ValidationError

from controller.domain.globs import matches_any
from controller.domain.ids import sha256_digest
from controller.domain.outcome import Gate, Verdict, VerifierOutput
from controller.domain.record import Record, field_faults
from controller.domain.task import TaskBundle
from controller.domain.tree import SYMLINK, Tree, TreeFile, changed_paths
from controller.domain.tree_stream import HarvestedTree
from controller.errors import SandboxLost
from controller.ports.patches import Patch

# What running Python leaves behind. It is no source, the subject does not read it, and it would only blur the patch.
BY_PRODUCTS: Final = ("**/__pycache__/**", "**/.pytest_cache/**", "**/.mypy_cache/**", "**/.ruff_cache/**")

GATES: Final = (
    "harvest-complete",
    "no-specials",
    "no-symlink-change",
    "protected-paths",
    "patch-not-empty",
    "patch-applies",
    "hidden-verifier",
)
NAMED_MAX: Final = 5  # how many paths or cases a detail names


class JudgeReport(Record):
    """What controller/guest/judge.py prints."""

    schema_version: Literal["fairtrial.judge/2"]
    applied: bool
    tree_matches: bool
    exit_code: int | None  # of the subject
    passed: tuple[str, ...]
    failed: tuple[str, ...]
    detail: str


def source_tree(base: Tree, harvested: Tree) -> dict[str, TreeFile]:
    """The harvested tree without by-products, save those that the base has too."""
    return {path: file for path, file in harvested.items() if path in base or not matches_any(path, BY_PRODUCTS)}


def tree_gates(bundle: TaskBundle, harvested: HarvestedTree | str) -> tuple[Gate, ...]:
    """The gates that need no machine. A text instead of a tree says why there is no tree, and fails them all."""
    if isinstance(harvested, str):
        return (Gate(name=GATES[0], passed=False, detail=harvested), *not_reached(GATES[1:5]))
    if harvested.truncated:
        detail = "the tree was cut off at the size limits, so what was removed can't be told"
        return (Gate(name=GATES[0], passed=False, detail=detail), *not_reached(GATES[1:5]))
    after = source_tree(bundle.base, harvested.tree)
    changed = changed_paths(bundle.base, after)
    specials = [f"{special.path} ({special.kind})" for special in harvested.specials]
    links = [path for path in changed if path in after and after[path].mode == SYMLINK]
    protected = [path for path in changed if matches_any(path, bundle.protected)]
    return (
        Gate(name=GATES[0], passed=True, detail=f"{len(harvested.tree)} files"),
        _none_of(GATES[1], specials, "entries that are neither files, links nor directories"),
        _none_of(GATES[2], links, "symbolic links added or retargeted"),
        _none_of(GATES[3], protected, "protected paths changed"),
        Gate(name=GATES[4], passed=bool(changed), detail=f"{len(changed)} paths changed"),
    )


def machine_gates(report: JudgeReport, cases: int) -> tuple[Gate, Gate]:
    """The two gates that the judge's report decides. Every one of the `cases` must have passed."""
    is_applied = report.applied and report.tree_matches
    applies = (
        "the patch gives the harvested tree" if is_applied else f"the patch does not give the tree: {report.detail}"
    )
    counted = f"{len(report.passed)} of {cases} hidden cases passed"
    if report.failed:
        counted += f"; failed: {_named(list(report.failed))}"
    if is_applied and report.detail:
        counted += f"; {report.detail}"
    is_solved = is_applied and not report.failed and len(report.passed) == cases > 0
    return (
        Gate(name=GATES[5], passed=is_applied, detail=applies),
        Gate(name=GATES[6], passed=is_solved, detail=counted if is_applied else "not run: an earlier gate failed"),
    )


def output_of(report: JudgeReport, raw: bytes, cases: int) -> VerifierOutput | None:
    """What may be told of the judge's report; None when it did not come to run the subject."""
    if not (report.applied and report.tree_matches):
        return None
    return VerifierOutput(
        exit_code=report.exit_code,
        cases=cases,
        passed=len(report.passed),
        failed=report.failed,
        report_bytes=len(raw),
        report_digest=sha256_digest(raw),
    )


def not_reached(names: tuple[str, ...]) -> tuple[Gate, ...]:
    """Gates that could not be decided, which is not a pass."""
    return tuple(Gate(name=name, passed=False, detail="not run: an earlier gate failed") for name in names)


def verdict_of(
    bundle: TaskBundle,
    gates: tuple[Gate, ...],
    patch: Patch | None,
    digest: str | None,
    output: VerifierOutput | None = None,
) -> Verdict:
    """Passed only when every gate is there and passed."""
    return Verdict(
        passed=tuple(gate.name for gate in gates) == GATES and all(gate.passed for gate in gates),
        gates=gates,
        patch_digest=digest,
        changed_paths=patch.changed if patch else (),
        soundness=bundle.entry.soundness,
        output=output,
    )


def parse_report(output: bytes) -> JudgeReport:
    """The judge's report. Raises SandboxLost when it is not one: the judge is ours, so the machine failed it."""
    try:
        return JudgeReport.model_validate_json(output)
    except ValidationError as error:
        fault = field_faults(error, whole="(whole line)")[0]
        raise SandboxLost(f"the judge printed no valid report, {fault}: {output[:200]!r}") from error


def _none_of(name: str, found: list[str], what: str) -> Gate:
    detail = f"{len(found)} {what}: {_named(found)}" if found else f"no {what}"
    return Gate(name=name, passed=not found, detail=detail)


def _named(items: list[str]) -> str:
    shown = ", ".join(item[:120] for item in items[:NAMED_MAX])
    return shown if len(items) <= NAMED_MAX else f"{shown} and {len(items) - NAMED_MAX} more"
