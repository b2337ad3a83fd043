"""When a round's sealed tasks are to be disclosed: not a millisecond before they are of no use to anybody's score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from controller.domain.instant import InstantMs, instant_text
from controller.domain.plan import RoundManifest
from controller.domain.statement import Statement, StatementKind
from controller.errors import InvalidInput, NotPublishable
from controller.evidence.corpus import leaf_hash

EMBARGO_DAYS: Final = 90
EMBARGO_MS: Final = EMBARGO_DAYS * 24 * 3600 * 1000


def closed_at(manifest: RoundManifest, statements: Sequence[Statement]) -> InstantMs:
    """When the round was closed. Raises NotPublishable while it is not: its tasks are in use."""
    closed = [statement.at for statement in statements if statement.kind is StatementKind.ROUND_CLOSED]
    if not closed:
        raise NotPublishable(f"round {manifest.round_id} is not closed, so its sealed tasks are in use")
    return closed[-1]


def due_at(closed: InstantMs, next_started: InstantMs | None) -> InstantMs:
    """The first moment of disclosure: 90 days after the close or the start of the next round, whichever is first.

    A round that is not closed discloses nothing, even when the next one has started.
    """
    embargo = closed + EMBARGO_MS
    return InstantMs(embargo if next_started is None else min(embargo, max(closed, next_started)))


def check_due(manifest: RoundManifest, closed: InstantMs, next_started: InstantMs | None, *, at: InstantMs) -> None:
    """Raises NotPublishable saying when it will be time."""
    due = due_at(closed, next_started)
    if at < due:
        raise NotPublishable(
            f"round {manifest.round_id}: its sealed tasks may be disclosed from {instant_text(due)} on, which is "
            f"{EMBARGO_DAYS} days after it was closed, or when the next round has started",
            remedy="Wait until then, or name the next round with --next once it has started.",
        )


def next_started_at(
    manifest: RoundManifest, following: RoundManifest, statements: Sequence[Statement]
) -> InstantMs | None:
    """When the following round was started; None while it is only frozen.

    Raises InvalidInput when it is no next round to this one, or still uses a task of this one.
    """
    name = f"round {following.round_id}"
    if (following.protocol, following.kind) != (manifest.protocol, manifest.kind):
        raise InvalidInput(
            f"{name} is a {following.kind} {following.protocol}, so it does not follow {manifest.round_id}"
        )
    if following.frozen_at <= manifest.frozen_at:
        raise InvalidInput(f"{name} was frozen before {manifest.round_id}, so it does not follow it")
    retired = {leaf_hash(task) for task in manifest.tasks if task.sealed is not None}
    kept = sorted(task.id for task in following.tasks if leaf_hash(task) in retired)
    if kept:
        raise InvalidInput(
            f"{name} still uses {', '.join(kept)}: disclosed tasks are replaced before another round is ranked",
            remedy="Freeze the next round with other sealed tasks.",
        )
    started = [statement.at for statement in statements if statement.kind is StatementKind.ROUND_STARTED]
    return started[0] if started else None
