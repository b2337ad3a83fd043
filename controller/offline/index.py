"""Step 1: the signed list and the files are the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Literal, Optional, Tuple

from .canonical import loads
from .files import INDEX, KEYS, REQUIRED, Files, is_known
from .merkle import sha256_digest
from .refusal import Refused
from .shapes import Digest, Positive, Slug, Whole, read
from .signatures import INDEX_TYPE, KeyRing, payload_of, read_keys

Correction = Annotated[str, re.compile(r"(?s).{1,600}")]


@dataclass(frozen=True)
class Entry:
    """One file."""

    name: str
    bytes: Whole
    digest: Digest


@dataclass(frozen=True)
class Index:
    """The signed list."""

    round_id: Slug
    manifest_digest: Digest
    version: Positive
    supersedes: Optional[Digest]
    correction: Optional[Correction]
    files: Tuple[Entry, ...]
    schema_version: Literal["fairtrial.bundle/2"] = "fairtrial.bundle/2"


def check_index(files: Files, ring: KeyRing) -> Index:
    """The index, if a trusted key signed it and it names exactly the other files, in byte order of their names."""
    if INDEX not in files:
        raise Refused(f"{INDEX} is missing")
    index = read(Index, loads(payload_of(files[INDEX], INDEX_TYPE, ring, INDEX), INDEX), INDEX)
    if {index.supersedes is None, index.correction is None} != {index.version == 1}:
        raise Refused(f"{INDEX}: a version after the first supersedes one and says why; the first does neither")
    listed = [entry.name for entry in index.files]
    present = sorted(files.keys() - {INDEX}, key=lambda name: name.encode("utf-8", "surrogateescape"))
    for name in sorted(set(present) ^ set(listed)):
        raise Refused(f"{name[:120]} is {'not in the index' if name in files else 'missing'}")
    if listed != present:
        raise Refused("the index does not name every file once, in byte order")
    for name in REQUIRED:
        if name not in files:
            raise Refused(f"{name} is not among the files")
    for entry in index.files:
        if not is_known(entry.name):
            raise Refused(f"{entry.name[:120]} is not a name a bundle may hold")
        data = files[entry.name]
        if (entry.bytes, entry.digest) != (len(data), sha256_digest(data)):
            raise Refused(f"{entry.name} has other bytes than the index says")
    read_keys(files[KEYS], KEYS)
    return index
