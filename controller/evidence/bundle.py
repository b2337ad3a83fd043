"""A bundle: the files of a published round and one signed index that names each by size and SHA-256."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import Field, StringConstraints, model_validator

from controller.domain.ids import Digest, Slug, sha256_digest
from controller.domain.keys import KeyRing
from controller.domain.record import Record
from controller.errors import BundleRejected, InvalidInput
from controller.evidence.canonical import canonical, parse
from controller.evidence.envelope import INDEX_TYPE, check, sign
from controller.ports.signer import Signer

INDEX: Final = "index.dsse.json"
MANIFEST: Final = "manifest.json"
MANIFEST_ENVELOPE: Final = "manifest.dsse.json"
AUTHORIZATION: Final = "authorization.dsse.json"
STATEMENTS: Final = "statements.jsonl"
CHECKPOINT: Final = "checkpoint.txt"
LEDGER: Final = "ledger.jsonl"
REFUSALS: Final = "refusals.jsonl"
DATASET: Final = "dataset.jsonl"
ANALYSIS: Final = "analysis.json"
REPORT: Final = "report.html"
KEYS: Final = "keys.json"
EXCERPTS: Final = "excerpts.jsonl"
AGGREGATE: Final = "aggregate.json"
SUMS: Final = "SHA256SUMS"
APPROVAL: Final = "approval.dsse.json"
REQUIRED: Final = frozenset(
    {
        MANIFEST, MANIFEST_ENVELOPE, AUTHORIZATION, STATEMENTS, CHECKPOINT, LEDGER, REFUSALS, DATASET, ANALYSIS,
        REPORT, KEYS, EXCERPTS, AGGREGATE, SUMS,
    }
)  # fmt: skip
# Only these may be published: a file nobody thought of can't slip out with a round.
_PATCH: Final = re.compile(r"patches/[a-z0-9-]{1,63}\.patch")
_GRANT: Final = re.compile(r"authorization(?:-([1-9][0-9]{0,3}))?\.dsse\.json")
_SIGNED_STATE: Final = re.compile(r"checkpoints/([1-9][0-9]{0,9})\.txt")
_COSIGNED: Final = re.compile(r"witness/([1-9][0-9]{0,9})-[0-9a-f]{8}\.txt")
_STAMP: Final = re.compile(r"timestamps/([1-9][0-9]{0,9})\.tsr")
_DISPUTE: Final = re.compile(r"disputes/[0-9a-f]{64}\.txt")
BUNDLE_BYTES_MAX: Final = 512 * 2**20  # a round of 10,000 attempts is about 200 MB; a checker must not be filled up


# Why a version supersedes the one before, in words for its readers; no longer than a report shows a text.
CORRECTION_CHARS_MAX: Final = 600
Correction = Annotated[str, StringConstraints(min_length=1, max_length=CORRECTION_CHARS_MAX)]


class IndexedFile(Record):
    name: str
    bytes: int = Field(ge=0)
    digest: Digest


class BundleIndex(Record):
    """The signed list. A later version names the index payload of the one before by digest, and says why it exists."""

    schema_version: Literal["fairtrial.bundle/2"] = "fairtrial.bundle/2"
    round_id: Slug
    manifest_digest: Digest
    version: int = Field(ge=1)
    supersedes: Digest | None
    correction: Correction | None
    files: tuple[IndexedFile, ...]

    @model_validator(mode="after")
    def _explains_itself(self) -> BundleIndex:
        later = self.version > 1
        if (self.supersedes is not None) != later or (self.correction is not None) != later:
            raise ValueError("a version after the first supersedes one and has a correction; the first does neither")
        return self


def is_publishable_name(name: str) -> bool:
    """True for the names a bundle may hold beside its index."""
    patterns = (_PATCH, _GRANT, _SIGNED_STATE, _COSIGNED, _STAMP, _DISPUTE)
    return name in {*REQUIRED, APPROVAL} or any(pattern.fullmatch(name) for pattern in patterns)


def patch_name(attempt_id: str) -> str:
    return f"patches/{attempt_id}.patch"


def grant_name(number: int) -> str:
    """The file of a round's grant, counted from 1; the first one bears no number in its name."""
    return AUTHORIZATION if number == 1 else f"authorization-{number}.dsse.json"


def grant_number(name: str) -> int | None:
    """Which grant a file of that name holds; None for any other file."""
    match = _GRANT.fullmatch(name)
    return None if match is None else int(match.group(1) or 1)


def checkpoint_name(size: int) -> str:
    """The file of a signed state of the log."""
    return f"checkpoints/{size}.txt"


def checkpoint_size(name: str) -> int | None:
    """How many statements a file of that name signs; None for any other file."""
    match = _SIGNED_STATE.fullmatch(name)
    return None if match is None else int(match.group(1))


def stamp_name(size: int) -> str:
    """The file of a third party's timestamp over the signed state of that size."""
    return f"timestamps/{size}.tsr"


def stamp_size(name: str) -> int | None:
    """The size of the signed state that a file of that name stamps; None for any other file."""
    match = _STAMP.fullmatch(name)
    return None if match is None else int(match.group(1))


def cosigned_name(size: int, key_hash: str) -> str:
    """The file of a signed state with the line of one witness, whose key's hash is 8 hex digits."""
    return f"witness/{size}-{key_hash}.txt"


def cosigned_size(name: str) -> int | None:
    """The size of the signed state that a file of that name repeats; None for any other file."""
    match = _COSIGNED.fullmatch(name)
    return None if match is None else int(match.group(1))


def dispute_name(text_digest: str) -> str:
    """The file of a dispute's text, named by what it holds."""
    return f"disputes/{text_digest.removeprefix('sha256:')}.txt"


def build(
    round_files: Mapping[str, bytes],
    signer: Signer,
    *,
    round_id: str,
    manifest_digest: str,
    version: int = 1,
    supersedes: str | None = None,
    correction: str | None = None,
) -> dict[str, bytes]:
    """The files and their signed index, in byte order of the names; the same bytes for the same input.

    Raises InvalidInput naming files that may not be published, and those that are missing.
    """
    strange = sorted(name for name in round_files if not is_publishable_name(name))
    absent = sorted(REQUIRED - round_files.keys())
    if strange or absent:
        raise InvalidInput(f"bundle: not publishable: {strange or 'none'}; missing: {absent or 'none'}")
    index = BundleIndex(
        round_id=round_id,
        manifest_digest=manifest_digest,
        version=version,
        supersedes=supersedes,
        correction=correction,
        files=_entries(round_files),
    )
    everything = {**round_files, INDEX: sign(INDEX_TYPE, canonical(index), signer)}
    return {name: everything[name] for name in sorted(everything, key=str.encode)}


def check_index(files: Mapping[str, bytes], keys: KeyRing) -> BundleIndex:
    """The index, if a trusted key signed it and it names exactly the files that are there, with their bytes.

    Raises BadSignature, NotCanonical, or BundleRejected naming the file.
    """
    if INDEX not in files:
        raise BundleRejected(f"{INDEX} is missing")
    index = parse(check(files[INDEX], INDEX_TYPE, keys, INDEX), BundleIndex, INDEX)
    present = {name: data for name, data in files.items() if name != INDEX}
    listed = {entry.name for entry in index.files}
    for name in sorted(present.keys() ^ listed):
        raise BundleRejected(f"{name} is {'not in the index' if name in present else 'missing'}")
    for name in sorted(REQUIRED - listed):
        raise BundleRejected(f"{name} is not among the files")
    for entry, found in zip(index.files, _entries(present), strict=True):
        if not is_publishable_name(entry.name):
            raise BundleRejected(f"{entry.name} is not a name a bundle may hold")
        if entry != found:
            raise BundleRejected(f"{entry.name} has other bytes than the index says")
    return index


def sums(files: Mapping[str, bytes]) -> bytes:
    """`SHA256SUMS` for `sha256sum -c`: every file but itself and the index, in byte order of the names."""
    named = sorted(files.keys() - {SUMS, INDEX}, key=str.encode)
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in named).encode()


def _entries(files: Mapping[str, bytes]) -> tuple[IndexedFile, ...]:
    return tuple(
        IndexedFile(name=name, bytes=len(files[name]), digest=sha256_digest(files[name]))
        for name in sorted(files, key=str.encode)
    )
