"""Why a logical run is measurement-invalid once its books are closed: the conductor writes it, the check derives it."""

from __future__ import annotations

from collections.abc import Mapping

from controller.domain.bodies import AttemptSettled, RunInvalidated, RunReconciled
from controller.domain.provider_report import REFUTED
from controller.domain.terms import InvalidationCause


def invalidation(
    accounts: Mapping[str, AttemptSettled], reconciled: RunReconciled | None, outcome: str | None
) -> RunInvalidated | None:
    """The reason of each attempt that makes the run invalid; None for a run that is not.

    `accounts` are those that hold in the end, by attempt, oldest first; `outcome` is None for a run without a score.
    """
    refuted = reconciled is not None and reconciled.finding in REFUTED
    reasons = {name: _reason(account, refuted) for name, account in accounts.items() if not account.valid}
    if not reasons and outcome == "invalid":
        reasons = {[*accounts][-1]: InvalidationCause.NOT_RETRIED}
    return RunInvalidated(reasons=reasons) if reasons else None


def _reason(account: AttemptSettled, refuted: bool) -> InvalidationCause:
    if account.off_lane_models:
        return InvalidationCause.MODEL_OFF_LANE
    if account.open_requests:
        return InvalidationCause.REQUEST_IN_FLIGHT
    return InvalidationCause.USAGE_REPORT_REFUTES if refuted else InvalidationCause.REQUEST_UNKNOWN
