"""The meter's ledger: accepted requests, durable before they are forwarded."""

from __future__ import annotations

from typing import Protocol

from controller.domain.ids import AttemptId, LogicalRunId, RequestId
from controller.domain.instant import InstantMs
from controller.domain.limits import SpendLimits
from controller.domain.money import UsdText
from controller.domain.outcome import ArtifactRecord
from controller.domain.record import Record
from controller.domain.usage import AttemptAccount, Dialect, MeteredRequest, Refusal, RequestState, Usage, ZeroBillProof


class MeterLife(Record):
    """One life of one meter process; the ledger keeps it beside every request that it accepted.

    `place` is where it serves, and no two living meters share one; `life` is drawn anew at every start.
    """

    place: str
    life: str

    @property
    def key(self) -> str:
        """How ledgers spell it."""
        return f"{self.place}#{self.life}"


class AttemptOpening(Record):
    """Admission rules of one attempt. Only the token's SHA-256 is stored, never the token."""

    attempt_id: AttemptId
    logical_run_id: LogicalRunId
    token_sha256: str
    provider: str
    model: str
    observed_models: tuple[str, ...]
    rate_tier: str
    dialect: Dialect
    provider_key_name: str  # which key the proxy uses; the rehearsal model reads the cell from it
    limits: SpendLimits
    expires_at: InstantMs


class RequestEnd(Record):
    """The one final statement about an accepted request."""

    state: RequestState
    ended_at: InstantMs
    status: int | None = None
    provider_message_id: str | None = None
    observed_model: str | None = None
    served_tier: str | None = None
    served_speed: str | None = None
    served_geo: str | None = None
    usage: Usage | None = None
    usd: UsdText | None = None
    zero_bill_proof: ZeroBillProof | None = None
    raw_usage_json: str = ""
    note: str = ""


def storable(text: str) -> str:
    """The text as every ledger keeps it: what UTF-8 or a database can't hold is spelled as an escape.

    A harness chooses some of these texts, and none of them may make a write fail.
    """
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


class Ledger(Protocol):
    """Durable when a method returns. Any I/O error raises LedgerUnavailable, after which nothing is admitted."""

    def open_attempt(self, opening: AttemptOpening) -> None:
        """Idempotent for the same opening. A different one under the same id is refused, unless the attempt was closed
        before it made any request: then it begins again under the new terms."""
        ...

    def close_attempt(self, attempt_id: AttemptId) -> None:
        """Revoke the token. Requests in flight drain."""
        ...

    def find_by_token(self, token_sha256: str) -> AttemptOpening | None:
        """The open, unexpired attempt of that token hash."""
        ...

    def accept(self, request: MeteredRequest, *, estimate_usd: UsdText) -> str | None:
        """Insert an ACCEPTED row, or return the name of the limit that forbids it. One transaction, fsynced.

        Raises ControllerFault in a ledger that was opened for no meter, and LedgerUnavailable when the clock has jumped
        since it was opened: then no expiry can be trusted.
        """
        ...

    def mark_sent(self, request_id: RequestId) -> None: ...

    def finish(self, request_id: RequestId, end: RequestEnd) -> None:
        """Exactly once; a second ending of the same request is an incident and raises ControllerFault."""
        ...

    def refuse(self, refusal: Refusal) -> None: ...

    def account(self, attempt_id: AttemptId) -> AttemptAccount:
        """All rows of one attempt in order of acceptance; empty and closed when it was never opened."""
        ...

    def recover(self, *, at: InstantMs) -> int:
        """End what meters that are gone left open: ACCEPTED becomes ZERO_BILL/never_sent, SENT becomes UNKNOWN.

        The requests of meters that live are not touched. Returns how many became UNKNOWN. Raises LedgerUnavailable
        when `at` is well before the newest request, which means that the clock is wrong.
        """
        ...


class UploadGrant(Record):
    """Permission to write one artifact once."""

    attempt_id: AttemptId
    token_sha256: str
    name: str
    bytes_max: int
    expires_at: InstantMs


class Artifacts(Protocol):
    """Write-once blobs by attempt and name. The service that receives them can't read or replace them."""

    def grant(self, grants: tuple[UploadGrant, ...]) -> None:
        """Idempotent for equal grants; others are refused, unless the old were revoked before anything was stored."""
        ...

    def find_grant(self, attempt_id: AttemptId, name: str, token_sha256: str) -> UploadGrant | None: ...

    def store(self, grant: UploadGrant, data: bytes, *, at: InstantMs) -> ArtifactRecord:
        """Durable (file and directory fsynced) when it returns. A second write of the name raises InvalidInput."""
        ...

    def list(self, attempt_id: AttemptId) -> tuple[ArtifactRecord, ...]: ...

    def read(self, attempt_id: AttemptId, name: str, *, bytes_max: int) -> bytes: ...

    def revoke(self, attempt_id: AttemptId) -> None: ...
