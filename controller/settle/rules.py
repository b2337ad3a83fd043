"""From the meter's rows to money."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from controller.domain.bodies import AttemptSettled, RoundSettled
from controller.domain.money import sum_usd as sum_usd
from controller.domain.money import usd_from_text, usd_to_text
from controller.domain.usage import AttemptAccount, MeteredRequest, RequestState


def settle_attempt(account: AttemptAccount) -> AttemptSettled:
    """Sum one attempt. Not valid when a request is open or unknown; its cost is then null, never a partial sum."""
    problems = tuple(f"request {row.sequence} is {row.state.value}" for row in account.requests if not _settled(row))
    total = sum((usd_from_text(row.usd) for row in account.requests if row.usd is not None), Fraction(0))
    tokens: Counter[str] = Counter()
    for row in account.requests:
        if row.usage is not None:
            tokens.update({str(name): count for name, count in row.usage.tokens.items()})
    return AttemptSettled(
        requests=sum(1 for row in account.requests if row.counts),
        refusals=len(account.refusals),
        tokens=dict(sorted(tokens.items())),
        usd=None if problems else usd_to_text(total),
        valid=not problems,
        problems=problems,
    )


def _settled(row: MeteredRequest) -> bool:
    """One usage record with its price, or one zero-bill proof."""
    if row.state is RequestState.SETTLED:
        return row.usage is not None and row.usd is not None
    return row.state is RequestState.ZERO_BILL and row.zero_bill_proof is not None


def settle_round(attempts_by_run: Mapping[str, Sequence[AttemptSettled]]) -> RoundSettled:
    """Totals over every attempt of every logical run, retried ones included."""
    every = [account for accounts in attempts_by_run.values() for account in accounts]
    return RoundSettled(
        attempts=len(every),
        requests=sum(account.requests for account in every),
        usd=sum_usd(account.usd for account in every),
        invalid_runs=tuple(
            sorted(run for run, accounts in attempts_by_run.items() if not all(a.valid for a in accounts))
        ),
    )
