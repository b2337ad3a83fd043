"""Part of step 6: a round ends early only for a predeclared event, and the log shows it where a log can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, List, Set, Tuple

from . import claims as said
from .log import Statement
from .refusal import Refused
from .shapes import Between, Partial, Positive

DECLARED = ("health-degradation", "sealed-task-exposure")  # by persons: no log can show these
SHOWN = ("error-share", "observed-model", "reconciliation")
EXCUSED = ("infrastructure", "provider_error")
Percent = Annotated[int, Between(0, 100)]


@dataclass(frozen=True)
class StopRules(Partial):
    """The frozen events, and what is too large a share."""

    events: Tuple[str, ...]
    excused_percent_max: Percent
    unreconciled_percent_max: Percent
    attempts_before_share: Positive


def check_stops(rules: StopRules, log: List[Statement]) -> None:
    """Raises Refused naming a stop that was not predeclared, or whose event the log does not show before it."""
    ends: List[bool] = []  # of every classified attempt: whether infrastructure or provider ended it
    accounts: List[bool] = []  # of every settled attempt: whether its account did not settle
    shown: Set[str] = set()
    declarable = set(DECLARED).intersection(rules.events)
    for statement in log:
        claim = statement.claim
        place = f"statement {statement.sequence} stops the round"
        if isinstance(claim, said.AttemptClassified):
            ends.append(claim.end in EXCUSED)
            shown |= {"error-share"} if _is_too_many(ends, rules.excused_percent_max, rules) else set()
        elif isinstance(claim, said.AttemptSettled):
            accounts.append(not claim.valid)
            shown |= {"reconciliation"} if _is_too_many(accounts, rules.unreconciled_percent_max, rules) else set()
            shown |= {"observed-model"} if claim.off_lane_models else set()
        elif isinstance(claim, said.RoundStopped):
            if claim.rule not in rules.events or claim.rule in DECLARED:
                raise Refused(f"{place} for {claim.rule[:80]!r}, which is no predeclared event of the log")
            if claim.rule in SHOWN and claim.rule not in shown:
                raise Refused(f"{place} for {claim.rule!r}, which the log does not show")
        elif isinstance(claim, said.OperatorAct) and claim.event not in (None, *declarable):
            raise Refused(f"{place} for {str(claim.event)[:80]!r}, which is no predeclared event that persons declare")


def _is_too_many(found: List[bool], percent_max: int, rules: StopRules) -> bool:
    return len(found) >= rules.attempts_before_share and sum(found) * 100 > percent_max * len(found)
