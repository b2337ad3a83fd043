"""The Artifacts port in memory."""

from __future__ import annotations

from controller.adapters.artifacts_fs import ATTEMPT_PATTERN, NAME_PATTERN
from controller.domain.ids import AttemptId, sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.outcome import ArtifactRecord
from controller.errors import InvalidInput
from controller.ports.clock import Clock
from controller.ports.ledger import UploadGrant


class MemoryArtifacts:
    """Forgets everything with the process; otherwise it keeps the contract of the real one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._grants: dict[tuple[AttemptId, str], UploadGrant] = {}
        self._revoked: set[tuple[AttemptId, str]] = set()
        self._stored: dict[tuple[AttemptId, str], tuple[ArtifactRecord, bytes]] = {}

    def grant(self, grants: tuple[UploadGrant, ...]) -> None:
        for grant in grants:
            key = (grant.attempt_id, grant.name)
            plain = ATTEMPT_PATTERN.fullmatch(grant.attempt_id) and NAME_PATTERN.fullmatch(grant.name)
            known = self._grants.get(key, grant)
            used = any(attempt == grant.attempt_id for attempt, _ in self._stored)
            if not plain or (known != grant and (used or key not in self._revoked)):
                raise InvalidInput(f"artifacts: {grant.attempt_id}/{grant.name} can't be granted on these terms")
        for grant in grants:
            key = (grant.attempt_id, grant.name)
            if self._grants.get(key) != grant:
                self._revoked.discard(key)
            self._grants[key] = grant

    def find_grant(self, attempt_id: AttemptId, name: str, token_sha256: str) -> UploadGrant | None:
        grant = self._grants.get((attempt_id, name))
        if grant is None or (attempt_id, name) in self._revoked or grant.expires_at <= self._clock.now():
            return None
        return grant if grant.token_sha256 == token_sha256 else None

    def store(self, grant: UploadGrant, data: bytes, *, at: InstantMs) -> ArtifactRecord:
        key = (grant.attempt_id, grant.name)
        known = self._stored.get(key)
        if len(data) > grant.bytes_max or (known is not None and known[1] != data):
            raise InvalidInput(f"artifacts: {grant.attempt_id}/{grant.name} can't be stored")
        if known is None:
            stored = ArtifactRecord(name=grant.name, digest=sha256_digest(data), bytes=len(data), received_at=at)
            known = self._stored[key] = (stored, data)
        return known[0]

    def list(self, attempt_id: AttemptId) -> tuple[ArtifactRecord, ...]:
        return tuple(stored for (owner, _), (stored, _) in sorted(self._stored.items()) if owner == attempt_id)

    def read(self, attempt_id: AttemptId, name: str, *, bytes_max: int) -> bytes:
        known = self._stored.get((attempt_id, name))
        if known is None or len(known[1]) > bytes_max:
            raise InvalidInput(f"artifacts: {attempt_id}/{name} can't be read")
        return known[1]

    def revoke(self, attempt_id: AttemptId) -> None:
        self._revoked |= {key for key in self._grants if key[0] == attempt_id}
