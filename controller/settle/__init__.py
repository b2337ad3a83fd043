"""Settle: every accepted request has exactly one usage record or one zero-bill proof, else the run is invalid.

Input: the meter's account of an attempt; later all accounts of the round, and the provider's usage reports if there are
any. Output: exact totals, or what is missing; every figure says whether it is exact, a floor or estimated.
Invariants: unknown poisons the sum it is in; nothing is rounded; a report never changes a row, and what it says is
never taken where it does not say it of every minute; the harness's own figures are shown and never used.
"""

from controller.settle.reconcile import reconcile
from controller.settle.reports import ProviderReports, read_reports
from controller.settle.rules import figure, off_lane_models, settle_attempt, settle_round, settled_usd

__all__ = [
    "ProviderReports",
    "figure",
    "off_lane_models",
    "read_reports",
    "reconcile",
    "settle_attempt",
    "settle_round",
    "settled_usd",
]
