"""One attempt as its logical run is reconciled: what was witnessed of it, and the meter's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.domain.bodies import AttemptClassified, AttemptSettled
from controller.domain.usage import MeteredRequest


@dataclass(frozen=True)
class AttemptRecord:
    """`settled` is the account as written when the attempt ended; `classified` is None if it never came so far."""

    attempt_id: str
    settled: AttemptSettled
    classified: AttemptClassified | None
    rows: Sequence[MeteredRequest]
