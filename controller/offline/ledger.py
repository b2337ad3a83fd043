"""The ledger and the refusals: what the meter wrote of every request, and each attempt's account from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Dict, Iterable, List, Literal, Optional, Sequence, Type, TypeVar

from .canonical import loads_lines
from .claims import AttemptSettled, Proof
from .money import usd_text
from .rates import Card, Lane, Usage, possible_prices
from .refusal import Refused
from .shapes import Digest, Positive, Usd, read

OPEN = ("accepted", "sent")
R = TypeVar("R")


@dataclass(frozen=True)
class Request:
    """One accepted request. `usd` is null until the request is final, and when its cost is unknown."""

    request_id: str
    attempt_id: str
    logical_run_id: str
    sequence: Positive
    dialect: Literal["anthropic", "openai_chat", "openai_responses", "gemini"]
    model: str
    state: Literal["accepted", "sent", "settled", "zero_bill", "unknown"]
    accepted_at: int
    ended_at: Optional[int]
    status: Optional[int]
    body_digest: Digest
    provider_message_id: Optional[str]
    observed_model: Optional[str]
    usage: Optional[Usage]
    usd: Optional[Usd]
    zero_bill_proof: Optional[Proof]
    note: str
    counts: bool = True
    served_tier: Optional[str] = None
    served_speed: Optional[str] = None
    served_geo: Optional[str] = None

    @property
    def place(self) -> str:
        """What a refusal calls it."""
        return f"{self.attempt_id[:80]} request {self.sequence}"


@dataclass(frozen=True)
class Refusal:
    """A request that was not forwarded."""

    attempt_id: Optional[str]
    at: int
    reason: str
    status: int
    limit: bool


def read_records(kind: Type[R], data: bytes, where: str) -> List[R]:
    """Every line of a file as a record."""
    return [
        read(kind, value, f"{where}:{number}") for number, (value, _) in enumerate(loads_lines(data, where), start=1)
    ]


def check_request(row: Request, lane: Lane, card: Card) -> None:
    """The request kept to its lane, and its price is what state, usage and card make it."""
    if row.model != lane.model:
        raise Refused(f"{row.place} asked for model {row.model[:80]!r}, off its lane")
    if row.state == "settled":
        if row.usage is None or row.usd is None:
            raise Refused(f"{row.place} is settled without usage or price")
        if row.observed_model is not None and row.observed_model not in lane.observed_models:
            raise Refused(f"{row.place} was answered by {row.observed_model[:80]!r}, off its lane")
        prices = possible_prices(card, lane, row.usage)
        if row.usd not in prices:
            given = " or ".join(prices) or "no price"
            raise Refused(f"{row.place} is charged {row.usd} USD, but the rate card gives {given}")
    elif row.state == "zero_bill":
        if row.zero_bill_proof is None or row.usd not in (None, "0"):
            raise Refused(f"{row.place} is called free without a proof")
    elif row.usd is not None:
        raise Refused(f"{row.place} has a price, though what it cost is unknown")


def account_of(rows: Sequence[Request], refusals: int, lane: Lane) -> AttemptSettled:
    """What the ledger says of one attempt. One request without an end of known cost leaves all of it without a cost."""
    is_valid = all(row.state in ("settled", "zero_bill") for row in rows)
    tokens: Dict[str, int] = Counter()
    for row in rows:
        for name, count in (row.usage.tokens if row.usage else {}).items():
            tokens[name] += count
    strange = [row.observed_model for row in rows if row.observed_model not in (None, *lane.observed_models)]
    return AttemptSettled(
        requests=sum(row.counts for row in rows),
        refusals=refusals,
        tokens=dict(tokens),
        usd=usd_text(priced(rows)) if is_valid else None,
        valid=is_valid,
        problems=(),
        open_requests=tuple(sorted(row.sequence for row in rows if row.state in OPEN)),
        off_lane_models=dict(Counter(str(model) for model in strange)),
    )


def priced(rows: Iterable[Request]) -> Fraction:
    """The sum of what has a price."""
    return sum((Fraction(row.usd) for row in rows if row.usd is not None), Fraction(0))


def as_open(row: Request) -> Request:
    """The row before its end, as an account that was written before then saw it."""
    return replace(row, state="sent", usage=None, usd=None, zero_bill_proof=None, observed_model=None)


def by_attempt(rows: Iterable[Request]) -> Dict[str, List[Request]]:
    """The rows of each attempt in order of their numbers."""
    found: Dict[str, List[Request]] = {}
    for row in rows:
        found.setdefault(row.attempt_id, []).append(row)
    return {name: sorted(own, key=lambda row: row.sequence) for name, own in found.items()}
