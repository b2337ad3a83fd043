"""Part of step 7: what the provider's usage report changed, derived again from the report's lines and the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.domain.reconciliation import AttemptRecord
from controller.domain.usage import MeteredRequest
from controller.errors import BundleRejected
from controller.evidence.exhibits import Exhibits
from controller.evidence.trails import RunTrail


def check_reconciliations(exhibits: Exhibits, rows: Mapping[str, Sequence[MeteredRequest]]) -> str:
    """Every run or none was compared, all with the same files, and each finding follows; what to say of it."""
    tried = {name: run for name, run in exhibits.trails.runs.items() if run.attempts}
    compared = {name: run for name, run in tried.items() if run.reconciled}
    if not compared:
        return ""
    left_out = sorted(tried.keys() - compared.keys())
    if left_out:
        raise BundleRejected(f"other runs were compared with the provider's report, but {left_out[0]} was not")
    files: dict[str, set[tuple[str, ...]]] = {}
    for name, run in compared.items():
        arm = exhibits.manifest.arm(exhibits.scheduled[name].arm)
        provider = exhibits.manifest.lane(arm.lane).provider
        files.setdefault(provider, set()).add(run.reconciled[0].provider.reports)
        _check_one(exhibits, name, run, rows)
    for provider, sets in files.items():
        if len(sets) > 1:
            raise BundleRejected(f"runs on {provider} were compared with different reports")
    resolved = sum(len(run.reconciled[0].resolved) for run in compared.values())
    return f"{len(compared)} runs compared with the provider's report again, {resolved} unknown requests resolved, "


def _check_one(exhibits: Exhibits, name: str, run: RunTrail, rows: Mapping[str, Sequence[MeteredRequest]]) -> None:
    claimed = run.reconciled[0]
    attempts = [
        AttemptRecord(
            attempt_id=trail.attempt_id,
            settled=trail.settled[0],
            classified=trail.classified[0] if trail.classified else None,
            rows=sorted(rows.get(trail.attempt_id, ()), key=lambda row: row.sequence),
        )
        for trail in run.attempts
        if trail.settled
    ]
    found = exhibits.recompute.reconciliation(
        exhibits.manifest, exhibits.scheduled[name], claimed.provider, attempts, scored=bool(run.scored)
    )
    if claimed != found:
        wrong = [field for field in type(found).model_fields if getattr(claimed, field) != getattr(found, field)]
        raise BundleRejected(f"{name} is reconciled otherwise than the provider's report gives: {', '.join(wrong)}")
