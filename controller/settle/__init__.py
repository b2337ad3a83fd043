"""Settle: every accepted request has exactly one usage record or one zero-bill proof, else the run is invalid.

Input: the meter's account of an attempt; later all accounts of the round. Output: exact totals, or what is missing.
Invariants: unknown poisons the sum it is in; nothing is rounded; the harness's own figures are not looked at.
"""

from controller.settle.rules import settle_attempt, settle_round

__all__ = ["settle_attempt", "settle_round"]
