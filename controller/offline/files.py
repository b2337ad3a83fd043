"""The files of a bundle, read from a directory that may have been made to hurt."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Dict, List, Pattern, Tuple

from .refusal import Refused

BYTES_MAX = 512 * 2**20
FILES_MAX = 200_000
DEPTH_MAX = 3
INDEX = "index.dsse.json"
MANIFEST = "manifest.json"
MANIFEST_ENVELOPE = "manifest.dsse.json"
AUTHORIZATION = "authorization.dsse.json"
STATEMENTS = "statements.jsonl"
CHECKPOINT = "checkpoint.txt"
LEDGER = "ledger.jsonl"
REFUSALS = "refusals.jsonl"
DATASET = "dataset.jsonl"
ANALYSIS = "analysis.json"
REPORT = "report.html"
KEYS = "keys.json"
EXCERPTS = "excerpts.jsonl"
AGGREGATE = "aggregate.json"
SUMS = "SHA256SUMS"
APPROVAL = "approval.dsse.json"
REQUIRED = (
    MANIFEST, MANIFEST_ENVELOPE, AUTHORIZATION, STATEMENTS, CHECKPOINT, LEDGER, REFUSALS, DATASET, ANALYSIS, REPORT,
    KEYS, EXCERPTS, AGGREGATE, SUMS,
)  # fmt: skip
PATCH = re.compile(r"patches/[a-z0-9-]{1,63}\.patch")
SIGNED_STATE = re.compile(r"checkpoints/([1-9][0-9]{0,9})\.txt")
COSIGNED = re.compile(r"witness/([1-9][0-9]{0,9})-[0-9a-f]{8}\.txt")
STAMP = re.compile(r"timestamps/([1-9][0-9]{0,9})\.tsr")
DISPUTE = re.compile(r"disputes/[0-9a-f]{64}\.txt")
LATER_GRANT = re.compile(r"authorization-([1-9][0-9]{0,3})\.dsse\.json")

Files = Dict[str, bytes]


def is_known(name: str) -> bool:
    """True for the names that may stand in an index."""
    patterns = (PATCH, LATER_GRANT, SIGNED_STATE, COSIGNED, STAMP, DISPUTE)
    return name in (*REQUIRED, APPROVAL) or any(pattern.fullmatch(name) for pattern in patterns)


def patch_name(attempt_id: str) -> str:
    """Where the patch of an attempt lies."""
    return f"patches/{attempt_id}.patch"


def grant_names(files: Files) -> List[str]:
    """The grants, oldest first."""
    return [AUTHORIZATION, *(name for _, name in numbered(files, LATER_GRANT))]


def numbered(files: Files, pattern: Pattern[str]) -> List[Tuple[int, str]]:
    """The files of one kind with the number in their names, in its order."""
    return sorted((int(match.group(1)), name) for name in files for match in [pattern.fullmatch(name)] if match)


def read_bundle(directory: Path) -> Files:
    """Every file below the directory by its name. Raises Refused for links, special files and excess."""
    found: Files = {}
    left = BYTES_MAX
    for path, name in _walk(directory):
        if len(found) >= FILES_MAX:
            raise Refused(f"more than {FILES_MAX} files")
        data = read_file(path, name, left)
        left -= len(data)
        found[name] = data
    return found


def read_file(path: str, name: str, bytes_max: int) -> bytes:
    """The bytes of a regular file that is no link. Raises Refused."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags)
        with os.fdopen(handle, "rb") as stream:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Refused(f"{_told(name)} is not a regular file")
            data = stream.read(bytes_max + 1)
    except OSError as error:
        raise Refused(f"{_told(name)} can't be read: {error.strerror}") from error
    if len(data) > bytes_max:
        raise Refused(f"{_told(name)}: more than the {BYTES_MAX} bytes that a bundle may have")
    return data


def _walk(directory: Path) -> List[Tuple[str, str]]:
    """Path and name of everything that is not a directory, in order of the names. No link is followed."""
    found = []
    waiting = [(os.fspath(directory), "", 0)]
    while waiting:
        path, prefix, depth = waiting.pop()
        if depth > DEPTH_MAX:
            raise Refused(f"{_told(prefix)}: directories lie too deep")
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, f"{prefix}{entry.name}/", depth + 1))
                    else:
                        found.append((entry.path, prefix + entry.name))
                    if len(found) + len(waiting) > FILES_MAX:
                        raise Refused(f"more than {FILES_MAX} files")
        except OSError as error:
            raise Refused(f"{_told(prefix)} can't be listed: {error.strerror}") from error
    return sorted(found, key=lambda each: each[1])


def _told(name: str) -> str:
    """A name as it may be printed: its bytes were chosen by a stranger."""
    return ascii(name[:120])[1:-1] or "the bundle"
