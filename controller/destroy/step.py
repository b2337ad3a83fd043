"""Destroy and record it."""

from __future__ import annotations

from controller.domain.bodies import SandboxGone
from controller.domain.statement import StatementKind
from controller.ports.clock import Clock
from controller.ports.journal import Journal
from controller.ports.pool import DestroyReceipt, Pool


def destroy(pool: Pool, journal: Journal, clock: Clock, name: str, *, generation: int) -> DestroyReceipt:
    """Destroy the machine and write the receipt. Raises StaleGeneration when a newer holder exists."""
    receipt = pool.destroy(name, generation=generation)
    body = SandboxGone(name=name, generation=generation, existed=receipt.existed, proof=receipt.proof)
    key = f"{StatementKind.SANDBOX_DESTROYED}:{name}:g{generation}:{receipt.destroyed_at}"
    journal.append(StatementKind.SANDBOX_DESTROYED, name, body, at=clock.now(), key=key)
    return receipt


def sweep(pool: Pool, clock: Clock) -> tuple[DestroyReceipt, ...]:
    """One pass of the reaper: whatever has expired, whoever owned it."""
    return pool.reap(at=clock.now())
