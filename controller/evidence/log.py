"""The chain of statements: each names the one before it by digest, and a checkpoint signs size and root of them all.

The chain alone can't see that its tail was cut off or that it was rewritten whole; the signed checkpoint can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.record import Record
from controller.domain.statement import Statement, StatementKind
from controller.errors import BundleRejected, LogRewritten
from controller.evidence import merkle
from controller.evidence.canonical import canonical
from controller.evidence.note import Checkpoint, log_origin

NOTHING: Final = sha256_digest(b"")


def next_statement(
    previous: Statement | None, *, kind: StatementKind, at: InstantMs, subject: str, body: Record | dict[str, Any]
) -> Statement:
    """The statement that follows `previous`, or the first one. `body` is a record of `bodies`, or its JSON form."""
    return Statement(
        sequence=0 if previous is None else previous.sequence + 1,
        kind=kind,
        at=at,
        subject=subject,
        body=body.model_dump(mode="json") if isinstance(body, Record) else body,
        previous=NOTHING if previous is None else sha256_digest(canonical(previous)),
    )


def leaves(statements: Sequence[Statement]) -> tuple[bytes, ...]:
    """The leaf data of the log: the canonical bytes of each statement."""
    return tuple(canonical(statement) for statement in statements)


def check_chain(statements: Sequence[Statement], spelled: Sequence[bytes] | None = None) -> None:
    """Raises BundleRejected naming the first statement that is out of order or does not name its predecessor.

    `spelled` are the canonical bytes of the statements, when the caller has read them.
    """
    expected = NOTHING
    for position, (statement, leaf) in enumerate(zip(statements, spelled or leaves(statements), strict=True)):
        if statement.sequence != position:
            raise BundleRejected(f"statement at position {position} calls itself {statement.sequence}")
        if statement.previous != expected:
            raise BundleRejected(f"statement {position} does not follow from the one before it")
        expected = sha256_digest(leaf)


def check_continues(spelled: Sequence[bytes], signed: Sequence[Checkpoint]) -> None:
    """Raises LogRewritten naming the first state that is not the log's first statements.

    `spelled` are the canonical bytes of all statements.
    """
    found = merkle.roots_at(spelled, {checkpoint.size for checkpoint in signed})
    for checkpoint in signed:
        if checkpoint.size not in found:
            raise LogRewritten(f"{checkpoint.size} statements were signed, and the log has {len(spelled)}")
        if checkpoint.root != found[checkpoint.size]:
            raise LogRewritten(f"the first {checkpoint.size} statements are not those that were signed")


def checkpoint_of(round_id: str, spelled: Sequence[bytes]) -> Checkpoint:
    """Size and RFC 6962 root over the canonical bytes of the statements (see `leaves`)."""
    return Checkpoint(origin=log_origin(round_id), size=len(spelled), root=merkle.root(spelled))
