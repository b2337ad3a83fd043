"""The predeclared events that end a round early; who is winning is not among them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class StopEvent(StrEnum):
    AUTHORIZATION = "authorization"  # the caps do not cover another attempt
    ERROR_SHARE = "error-share"  # too many attempts ended in infrastructure or provider errors
    HEALTH_DEGRADATION = "health-degradation"  # of the production system that shares anything with the round
    OBSERVED_MODEL = "observed-model"  # another model answered than the lane names
    RATE_CARD = "rate-card"  # the meter prices by another card than the frozen one
    RECONCILIATION = "reconciliation"  # too many attempts whose account did not settle
    SEALED_TASK_EXPOSURE = "sealed-task-exposure"


# The log can't show these; a person declares them, and the declaration is in the log.
DECLARED: Final = frozenset({StopEvent.HEALTH_DEGRADATION, StopEvent.SEALED_TASK_EXPOSURE})
