"""What a controller may do with an attempt it finds unfinished. Pure: facts in, a decision out.

Invariant 1: adopt what is provably alive, accept what is provably done, begin again only what provably spent nothing,
else halt and ask. Never silently spend again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from controller.domain.usage import AttemptAccount


class Decision(StrEnum):
    ACCEPT = "accept"  # the result is durable: collect it
    CONTINUE = "continue"  # the machine is alive: go on in it, waiting for what already runs
    BEGIN = "begin"  # nothing was spent and nothing handed in: lease anew under the next generation
    LOST = "lost"  # nothing was spent, but the machine is gone: an infrastructure fault
    HALT = "halt"


@dataclass(frozen=True)
class Found:
    """What can be seen from outside after a crash, or at the first start."""

    fresh: bool  # the intent was written by this controller, moments ago
    result_durable: bool  # the guest's last artifact is on our disk
    machine_alive: bool
    artifacts: int  # what the guest has handed in so far
    account: AttemptAccount


def decide(found: Found) -> Decision:
    """The one allowed way on for an attempt without an acknowledged result."""
    if found.result_durable:
        return Decision.ACCEPT
    if found.machine_alive or found.fresh:
        return Decision.CONTINUE
    if found.account.requests:
        return Decision.HALT
    return Decision.LOST if found.artifacts else Decision.BEGIN
