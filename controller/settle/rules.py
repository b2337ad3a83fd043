"""From the meter's rows to money."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction

from controller.domain.bodies import AttemptSettled, RoundSettled
from controller.domain.money import UsdText, sum_usd, usd_from_text, usd_to_text
from controller.domain.provider_report import Figure
from controller.domain.usage import AttemptAccount, MeteredRequest, RequestState


def settle_attempt(account: AttemptAccount, *, observed_models: Collection[str]) -> AttemptSettled:
    """Sum one attempt. Not valid when a request is open or unknown; its cost is then null, never a partial sum.

    `observed_models` are the names that a response may call the lane's model by.
    """
    problems = tuple(f"request {row.sequence} is {row.state.value}" for row in account.requests if not _settled(row))
    tokens: Counter[str] = Counter()
    for row in account.requests:
        if row.usage is not None:
            tokens.update({str(name): count for name, count in row.usage.tokens.items()})
    return AttemptSettled(
        requests=sum(1 for row in account.requests if row.counts),
        refusals=len(account.refusals),
        tokens=dict(sorted(tokens.items())),
        usd=None if problems else settled_usd(account.requests),
        valid=not problems,
        problems=problems,
        open_requests=tuple(row.sequence for row in account.requests if row.state.is_open),
        off_lane_models=off_lane_models(account.requests, observed_models),
    )


def _settled(row: MeteredRequest) -> bool:
    """One usage record with its price, or one zero-bill proof."""
    if row.state is RequestState.SETTLED:
        return row.usage is not None and row.usd is not None
    return row.state is RequestState.ZERO_BILL and row.zero_bill_proof is not None


def settled_usd(rows: Sequence[MeteredRequest]) -> UsdText:
    """The sum of what has a price: the total, or its floor when some row has none."""
    return usd_to_text(sum((usd_from_text(row.usd) for row in rows if row.usd is not None), Fraction(0)))


def off_lane_models(rows: Sequence[MeteredRequest], observed_models: Collection[str]) -> dict[str, int]:
    """Requests by the model that answered them, for every model that is not the lane's."""
    named = (row.observed_model for row in rows if row.observed_model is not None)
    return dict(sorted(Counter(model for model in named if model not in observed_models).items()))


def settle_round(
    attempts_by_run: Mapping[str, Sequence[AttemptSettled]],
    *,
    floors: Sequence[UsdText],
    estimated: bool = False,
) -> RoundSettled:
    """Totals over every attempt of every logical run, retried ones included.

    `floors` are what is certain of each logical run; `estimated` tells that usage was assigned in some of them.
    """
    every = [account for accounts in attempts_by_run.values() for account in accounts]
    usd = sum_usd(account.usd for account in every)
    return RoundSettled(
        attempts=len(every),
        requests=sum(account.requests for account in every),
        usd=usd,
        floor_usd=usd_to_text(sum(map(usd_from_text, floors), Fraction(0))),
        figure=figure(usd, estimated=estimated),
        invalid_runs=tuple(
            sorted(run for run, accounts in attempts_by_run.items() if not all(a.valid for a in accounts))
        ),
    )


def figure(usd: UsdText | None, *, estimated: bool) -> Figure:
    """What a sum is, by whether it is known and whether usage was assigned in it."""
    if usd is None:
        return Figure.FLOOR
    return Figure.ESTIMATED if estimated else Figure.EXACT
