"""Artifacts as files, written once: `<root>/<attempt>/<name>`; grants and receipts in one SQLite file beside them.

A file becomes visible under its name by a hard link from a finished, fsynced temporary file, so a name either holds the
whole artifact or does not exist.
"""

from __future__ import annotations

import errno
import hmac
import os
import re
import secrets
import sqlite3
from pathlib import Path
from typing import Any, Final

from controller.adapters.files_durable import sync_directory
from controller.adapters.sqlite_writer import SqliteWriter
from controller.domain.ids import AttemptId, sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.outcome import ArtifactRecord
from controller.errors import DiskFull, InvalidInput
from controller.ports.clock import Clock
from controller.ports.ledger import UploadGrant

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS grants (
  attempt_id TEXT NOT NULL, name TEXT NOT NULL, token_sha256 TEXT NOT NULL, bytes_max INTEGER NOT NULL,
  expires_at INTEGER NOT NULL, revoked INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (attempt_id, name)) STRICT;
CREATE TABLE IF NOT EXISTS stored (
  attempt_id TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, bytes INTEGER NOT NULL,
  received_at INTEGER NOT NULL, PRIMARY KEY (attempt_id, name)) STRICT
"""
ATTEMPT_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
NAME_PATTERN: Final = re.compile(r"[a-z0-9][a-z0-9.-]{0,99}")
NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class FsArtifacts:
    """The Artifacts port over a directory, shared by the result API (which stores) and the controller (which reads)."""

    def __init__(self, root: Path, grants_path: Path, clock: Clock) -> None:
        """Open or create both. Raises LedgerUnavailable when the grants can't be written durably."""
        self._root = root
        self._clock = clock
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = SqliteWriter(grants_path, SCHEMA)

    def close(self) -> None:
        """Finish queued writes and close the grants."""
        self._file.close()

    def grant(self, grants: tuple[UploadGrant, ...]) -> None:
        """See Artifacts. Raises InvalidInput for a malformed name or a different grant under a known name."""
        for grant in grants:
            _check_names(grant.attempt_id, grant.name)

        def job(db: sqlite3.Connection) -> None:
            for grant in grants:
                known = _grant(db, grant.attempt_id, grant.name)
                if known is not None and known[0] == grant:
                    continue
                used = db.execute("SELECT 1 FROM stored WHERE attempt_id = ?", (grant.attempt_id,)).fetchone()
                if known is not None and (not known[1] or used):
                    raise InvalidInput(f"artifacts: {grant.attempt_id}/{grant.name} was granted on other terms")
                # Grants that were revoked before anything was stored may be given anew under another token.
                db.execute(
                    "INSERT OR REPLACE INTO grants (attempt_id, name, token_sha256, bytes_max, expires_at)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (grant.attempt_id, grant.name, grant.token_sha256, grant.bytes_max, grant.expires_at),
                )

        self._file.write(job)

    def find_grant(self, attempt_id: AttemptId, name: str, token_sha256: str) -> UploadGrant | None:
        """See Artifacts. None as well for a grant that is revoked or expired."""
        known = self._file.read(lambda db: _grant(db, attempt_id, name))
        if known is None or known[1] or known[0].expires_at <= self._clock.now():
            return None
        return known[0] if hmac.compare_digest(known[0].token_sha256, token_sha256) else None

    def store(self, grant: UploadGrant, data: bytes, *, at: InstantMs) -> ArtifactRecord:
        """See Artifacts. Equal bytes again give the first acknowledgement again.

        Raises InvalidInput for other bytes, too many bytes or a name that is taken; DiskFull when there is no room,
        and then nothing half-written remains.
        """
        _check_names(grant.attempt_id, grant.name)
        where = f"{grant.attempt_id}/{grant.name}"
        if len(data) > grant.bytes_max:
            raise InvalidInput(f"artifacts: {where} has {len(data)} bytes, more than the granted {grant.bytes_max}")
        offered = ArtifactRecord(name=grant.name, digest=sha256_digest(data), bytes=len(data), received_at=at)
        try:
            self._place(grant.attempt_id, grant.name, data)
        except OSError as error:
            if error.errno in NO_SPACE:
                raise DiskFull(f"artifacts: no room for {where}: {error.strerror}") from error
            raise
        stored = self._file.write(lambda db: _insert_once(db, grant.attempt_id, offered))
        if stored.digest != offered.digest:
            raise InvalidInput(f"artifacts: {where} was stored before with other bytes")
        return stored

    def _place(self, attempt_id: str, name: str, data: bytes) -> None:
        directory = self._root / attempt_id
        if not directory.is_dir():
            directory.mkdir(mode=0o700, exist_ok=True)
            sync_directory(self._root)
        temporary = directory / f".{name}.{secrets.token_hex(8)}"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(temporary, directory / name, follow_symlinks=False)
            except FileExistsError:
                if self._bytes(attempt_id, name, bytes_max=len(data)) != data:
                    raise InvalidInput(f"artifacts: {attempt_id}/{name} was stored before with other bytes") from None
        finally:
            temporary.unlink(missing_ok=True)
        sync_directory(directory)

    def _bytes(self, attempt_id: str, name: str, *, bytes_max: int) -> bytes:
        descriptor = os.open(self._root / attempt_id / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(bytes_max + 1)

    def list(self, attempt_id: AttemptId) -> tuple[ArtifactRecord, ...]:
        """See Artifacts; in byte order of the names. Only what was acknowledged, or is about to be."""
        query = f"SELECT {_COLUMNS} FROM stored WHERE attempt_id = ? ORDER BY name"  # noqa: S608 - a constant
        rows = self._file.read(lambda db: db.execute(query, (attempt_id,)).fetchall())
        return tuple(_stored(row) for row in rows)

    def read(self, attempt_id: AttemptId, name: str, *, bytes_max: int) -> bytes:
        """See Artifacts. Raises InvalidInput when it is absent, larger than `bytes_max`, or not what was stored."""
        _check_names(attempt_id, name)
        where = f"{attempt_id}/{name}"
        query = f"SELECT {_COLUMNS} FROM stored WHERE attempt_id = ? AND name = ?"  # noqa: S608 - a constant
        row = self._file.read(lambda db: db.execute(query, (attempt_id, name)).fetchone())
        if row is None:
            raise InvalidInput(f"artifacts: {where} was not stored")
        stored = _stored(row)
        if stored.bytes > bytes_max:
            raise InvalidInput(f"artifacts: {where} has {stored.bytes} bytes, more than the {bytes_max} asked for")
        try:
            data = self._bytes(attempt_id, name, bytes_max=bytes_max)
        except OSError as error:
            raise InvalidInput(f"artifacts: {where} can't be read: {error.strerror}") from error
        if sha256_digest(data) != stored.digest:
            raise InvalidInput(f"artifacts: {where} no longer has the digest it was stored with")
        return data

    def revoke(self, attempt_id: AttemptId) -> None:
        """See Artifacts. Idempotent."""
        self._file.write(lambda db: db.execute("UPDATE grants SET revoked = 1 WHERE attempt_id = ?", (attempt_id,)))


_COLUMNS: Final = "name, digest, bytes, received_at"


def _check_names(attempt_id: str, name: str) -> None:
    if ATTEMPT_PATTERN.fullmatch(attempt_id) is None or NAME_PATTERN.fullmatch(name) is None:
        raise InvalidInput(f"artifacts: {attempt_id[:80]!r}/{name[:120]!r} is not an attempt and a plain file name")


def _grant(db: sqlite3.Connection, attempt_id: str, name: str) -> tuple[UploadGrant, bool] | None:
    row = db.execute(
        "SELECT token_sha256, bytes_max, expires_at, revoked FROM grants WHERE attempt_id = ? AND name = ?",
        (attempt_id, name),
    ).fetchone()
    if row is None:
        return None
    grant = UploadGrant(
        attempt_id=AttemptId(attempt_id),
        token_sha256=row[0],
        name=name,
        bytes_max=row[1],
        expires_at=InstantMs(row[2]),
    )
    return grant, bool(row[3])


def _insert_once(db: sqlite3.Connection, attempt_id: AttemptId, offered: ArtifactRecord) -> ArtifactRecord:
    db.execute(
        f"INSERT INTO stored (attempt_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",  # noqa: S608 - a constant
        (attempt_id, offered.name, offered.digest, offered.bytes, offered.received_at),
    )
    query = f"SELECT {_COLUMNS} FROM stored WHERE attempt_id = ? AND name = ?"  # noqa: S608 - a constant
    return _stored(db.execute(query, (attempt_id, offered.name)).fetchone())


def _stored(row: tuple[Any, ...]) -> ArtifactRecord:
    return ArtifactRecord(name=row[0], digest=row[1], bytes=row[2], received_at=InstantMs(row[3]))
