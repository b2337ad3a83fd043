"""The log: the chain that joins the statements, and the leaves of their tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Tuple, Type, TypeVar

from .canonical import loads_lines
from .claims import KINDS
from .files import STATEMENTS
from .merkle import leaf_hash, sha256_digest
from .refusal import Refused
from .shapes import Digest, Whole, read

B = TypeVar("B")


@dataclass(frozen=True)
class _Line:
    sequence: Whole
    kind: str
    at: int
    subject: str
    body: Any
    previous: Digest


@dataclass(frozen=True)
class Statement:
    """One claim with its typed body."""

    sequence: int
    at: int
    subject: str
    claim: Any


def read_log(data: bytes) -> Tuple[List[Statement], List[bytes]]:
    """The statements in order, and their leaf hashes. Raises Refused for a broken chain or claim."""
    found: List[Statement] = []
    leaves = []
    expected = sha256_digest(b"")
    for position, (value, raw) in enumerate(loads_lines(data, STATEMENTS)):
        where = f"statement {position}"
        line = read(_Line, value, where)
        if line.sequence != position:
            raise Refused(f"statement at position {position} calls itself {line.sequence}")
        if line.previous != expected:
            raise Refused(f"statement {position} does not follow from the one before it")
        if line.kind not in KINDS:
            raise Refused(f"{where}: {line.kind[:60]!r} is not a known kind")
        claim = read(KINDS[line.kind], line.body, f"{where} ({line.kind})")
        found.append(Statement(position, line.at, line.subject, claim))
        leaves.append(leaf_hash(raw))
        expected = sha256_digest(raw)
    return found, leaves


def claims(log: List[Statement], kind: Type[B]) -> List[B]:
    """Every claim of that kind in order."""
    return [statement.claim for statement in log if isinstance(statement.claim, kind)]
