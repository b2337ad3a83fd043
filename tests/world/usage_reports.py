"""Ledger rows of one logical run, and what a provider would report of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from controller.domain.bodies import AttemptClassified
from controller.domain.ids import AttemptId, LogicalRunId, RequestId
from controller.domain.instant import InstantMs
from controller.domain.outcome import BLAME, RETRYABLE, EndKind
from controller.domain.plan import Lane
from controller.domain.provider_report import MINUTE_MS, ProviderEvidence, ReportedSpan, ReportedUsage
from controller.domain.rate_card import RateBand, RateCard, RateRow
from controller.domain.reconciliation import AttemptRecord
from controller.domain.usage import AttemptAccount, MeteredRequest, RequestState, Usage, ZeroBillProof
from controller.settle import settle_attempt

NOON = InstantMs(int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp() * 1000))
LANE = Lane(id="lane", provider="anthropic", model="m-1", observed_models=("m-1", "m-1-20261101"))
# $2 per million tokens in, $10 per million out: 1,000 in and 100 out cost 0.002 + 0.001 dollars.
CARD = RateCard(
    name="test",
    rows=(
        RateRow(
            provider="anthropic",
            model="m-1",
            source="invented",
            retrieved_on="2026-11-01",
            bands=(RateBand(over=0, nano_usd_per_million={"in": 2_000_000_000, "out": 10_000_000_000}),),
        ),
    ),
)


def at(minute: int) -> InstantMs:
    return InstantMs(NOON + minute * MINUTE_MS)


def row(
    sequence: int,
    state: RequestState = RequestState.SETTLED,
    *,
    minute: int = 0,
    tokens_in: int = 1_000,
    tokens_out: int = 100,
    attempt: str = "att-1",
    observed_model: str | None = "m-1",
) -> MeteredRequest:
    """A request of twenty seconds; 1,000 tokens in and 100 out cost 0.003 dollars."""
    settled = state is RequestState.SETTLED
    cost = (2 * tokens_in + 10 * tokens_out) / 10**6
    return MeteredRequest(
        request_id=RequestId(f"{attempt}-{sequence}"),
        attempt_id=AttemptId(attempt),
        logical_run_id=LogicalRunId("t.a.r1"),
        sequence=sequence,
        dialect="anthropic",
        model="m-1",
        state=state,
        accepted_at=InstantMs(at(minute) + 10_000),
        ended_at=InstantMs(at(minute) + 30_000),
        status=200,
        body_digest="sha256:" + "0" * 64,
        provider_message_id=None,
        observed_model=observed_model if settled else None,
        usage=Usage.model_validate({"tokens": {"in": tokens_in, "out": tokens_out}}) if settled else None,
        usd=f"{cost:.6f}".rstrip("0").rstrip(".") if settled else "0" if state is RequestState.ZERO_BILL else None,
        zero_bill_proof=ZeroBillProof.DOCUMENTED_RULE if state is RequestState.ZERO_BILL else None,
        note="",
    )


def attempt(*rows: MeteredRequest, number: int = 1, end: EndKind = EndKind.NORMAL) -> AttemptRecord:
    """One attempt that passed verification if it ended normally."""
    name = f"att-{number}"
    account = AttemptAccount(attempt_id=AttemptId(name), requests=rows, refusals=(), open=False)
    return AttemptRecord(
        attempt_id=name,
        settled=settle_attempt(account, observed_models=LANE.observed_models),
        classified=AttemptClassified(
            run="t.a.r1",
            number=number,
            end=end,
            reason="",
            blame=BLAME[end],
            retryable=end in RETRYABLE,
            verified=True if end is EndKind.NORMAL else None,
            would_have_passed=False,
        ),
        rows=rows,
    )


def line(
    minute: int,
    tokens: Mapping[str, int],
    *,
    model: str = "m-1",
    tier: str | None = "standard",
    geo: str | None = None,
    requests: int | None = None,
) -> ReportedUsage:
    usage = Usage.model_validate({"tokens": dict(tokens)})
    return ReportedUsage(minute=at(minute), model=model, tier=tier, speed=None, geo=geo, usage=usage, requests=requests)


def evidence(
    *lines: ReportedUsage, covered: Sequence[tuple[int, int]] = ((-10, 60),), dedicated: bool = True
) -> ProviderEvidence:
    """A report from ten minutes before noon to an hour after it, unless told otherwise."""
    return ProviderEvidence(
        reports=("sha256:" + "1" * 64,),
        covered=tuple(ReportedSpan(from_at=at(start), until_at=at(end)) for start, end in covered),
        dedicated=dedicated,
        usage=lines,
    )


def openai_page(rows: Iterable[tuple[InstantMs, str, Mapping[str, Any]]], *, minutes: Iterable[int]) -> bytes:
    """A page with a bucket for every one of the minutes, given by their starts, and the rows by start and key."""
    wanted = list(rows)
    buckets = [
        {
            "object": "bucket",
            "start_time": start // 1000,
            "end_time": start // 1000 + 60,
            "results": [
                {
                    "object": "organization.usage.completions.result",
                    "api_key_id": key,
                    "model": "m-1",
                    "service_tier": "default",
                    **usage,
                }
                for found, key, usage in wanted
                if found == start
            ],
        }
        for start in minutes
    ]
    return json.dumps({"object": "page", "data": buckets, "has_more": False, "next_page": None}).encode()
