"""What one policy did over the matrix: counts, and costs that are totals only when every part is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Literal

from controller.analyse.policy_matrix import Matrix, MatrixRun
from controller.analyse.quantile import median
from controller.domain.exact import decimal_text, exact_from_text, exact_text
from controller.domain.money import usd_to_text
from controller.protocols.cost_index.rules import total_spend
from controller.protocols.optimizer_matrix.estimates import Costs, HeldOut, Policy, Stratum
from controller.protocols.optimizer_matrix.gates import effective_cost

Role = Literal["adaptive", "always-frontier", "prompt-only", "other"]


def policy_of(matrix: Matrix, policy: str) -> Policy:
    """One policy's results. Every run counts, whatever became of it."""
    runs = matrix.of(policy)
    held_out = [run for run in runs if run.held_out]
    strata, hits = Counter(run.row.stratum for run in runs), Counter(run.row.stratum for run in runs if run.verified)
    return Policy(
        policy=policy,
        role=_role(matrix, policy),
        runs=len(runs),
        attempts=sum(len(run.row.attempts) for run in runs),
        verified=verified(runs),
        unproven=sum(run.row.outcome == "success" and not run.verified for run in runs),
        failures=sum(run.row.outcome == "failure" for run in runs),
        invalid=sum(run.row.outcome == "invalid" for run in runs),
        costs=costs_of(runs, matrix.currency),
        held_out=HeldOut(runs=len(held_out), verified=verified(held_out), costs=costs_of(held_out, matrix.currency)),
        strata=tuple(
            Stratum(stratum=stratum, runs=count, verified=hits[stratum]) for stratum, count in sorted(strata.items())
        ),
    )


def verified(runs: Sequence[MatrixRun]) -> int:
    return sum(run.verified for run in runs)


def costs_of(runs: Sequence[MatrixRun], currency: str) -> Costs:
    """Unknown poisons the total and the median; what is known is shown beside them and compared with nothing."""
    costs = [run.cost for run in runs]
    total = total_spend(costs)
    known = sum((run.known_cost for run in runs), Fraction(0))
    middle = None if total is None else median([cost for cost in costs if cost is not None])
    shown = f"{currency} {decimal_text(known, 4)}"
    return Costs(
        runs=len(runs),
        unknown=sum(cost is None for cost in costs),
        all_known=total is not None,
        known_total=usd_to_text(known),
        total=None if total is None else usd_to_text(total),
        median=exact_text(middle),
        per_verified=exact_text(effective_cost(total, verified(runs))),
        shown=shown if total is not None else f"at least {shown}, the rest unknown",
    )


def exact_cost(text: str | None) -> Fraction | None:
    """A published total or median as a number; None when it is unknown."""
    value = exact_from_text(text)
    return value if isinstance(value, Fraction) else None


def _role(matrix: Matrix, policy: str) -> Role:
    roles = matrix.plan.roles
    named: dict[str, Role] = {
        roles.adaptive: "adaptive",
        roles.frontier: "always-frontier",
        roles.prompt_only: "prompt-only",
    }
    return named.get(policy, "other")
