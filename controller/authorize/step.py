"""Sign a grant, and read the one in force."""

from __future__ import annotations

from pathlib import Path

from controller.authorize import rules
from controller.domain.authorization import Authorization, Caps
from controller.domain.bodies import RoundAuthorized
from controller.domain.ids import Digest, sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.keys import KeyRing
from controller.domain.statement import StatementKind
from controller.errors import NotAuthorized
from controller.evidence.bundle import grant_name, grant_number
from controller.evidence.canonical import canonical, parse
from controller.evidence.envelope import AUTHORIZATION_TYPE, check, sign
from controller.ports.clock import Clock
from controller.ports.files import DurableFiles
from controller.ports.journal import Journal
from controller.ports.named_files import read_named
from controller.ports.signer import Signer


def authorize(
    round_dir: Path,
    manifest_digest: str,
    caps: Caps,
    signer: Signer,
    clock: Clock,
    *,
    files: DurableFiles,
    round_id: str,
    expires_at: InstantMs,
) -> Authorization:
    """Write a signed grant beside the manifest; a second one gets its own file and takes the first one's place.

    Raises InvalidInput for an expiry that is not in the future.
    """
    at = clock.now()
    rules.check_expiry(at, expires_at)
    grant = Authorization(
        round_id=round_id, manifest_digest=manifest_digest, authorized_at=at, expires_at=expires_at, caps=caps
    )
    number = max(grant_paths(round_dir), default=0) + 1
    files.create_file(round_dir / grant_name(number), sign(AUTHORIZATION_TYPE, canonical(grant), signer))
    return grant


def log_grant(journal: Journal, grant: Authorization, *, at: InstantMs) -> Digest:
    """Say in the log, once, that the grant is in force; returns its digest. A grant the log lacks covers nothing."""
    digest = sha256_digest(canonical(grant))
    body = RoundAuthorized(manifest_digest=grant.manifest_digest, authorization_digest=digest)
    key = f"{StatementKind.ROUND_AUTHORIZED}:{digest}"
    journal.append(StatementKind.ROUND_AUTHORIZED, grant.round_id, body, at=at, key=key)
    return digest


def check_authorization(round_dir: Path, manifest_digest: str, keys: KeyRing, at: InstantMs) -> Authorization:
    """The newest grant, if it is signed, binds this manifest and is in force.

    Raises NotAuthorized, AuthorizationExpired, BadSignature or NotCanonical.
    """
    paths = grant_paths(round_dir)
    if not paths:
        raise NotAuthorized(f"{round_dir}: no authorization")
    path = paths[max(paths)]
    try:
        data = read_named(path)
    except OSError as error:
        raise NotAuthorized(f"{path}: {error.strerror}") from error
    payload = check(data, AUTHORIZATION_TYPE, keys, path.name)
    return rules.check_in_force(parse(payload, Authorization, path.name), manifest_digest, at)


def grant_paths(round_dir: Path) -> dict[int, Path]:
    """The grants of a round by number, counted from 1."""
    found = round_dir.glob("authorization*.dsse.json")
    return {number: path for path in found if (number := grant_number(path.name)) is not None}
