"""Lease and record it."""

from __future__ import annotations

from controller.domain.bodies import SandboxLeased
from controller.domain.statement import StatementKind
from controller.ports.clock import Clock
from controller.ports.journal import Journal
from controller.ports.pool import Pool, Sandbox, SandboxSpec


def lease(pool: Pool, journal: Journal, clock: Clock, spec: SandboxSpec) -> Sandbox:
    """A booted machine, adopted if this lease already holds one. Raises SandboxLost, StaleGeneration."""
    sandbox = pool.lease(spec)
    facts = sandbox.facts
    body = SandboxLeased(
        name=spec.name,
        role=spec.role.value,
        generation=spec.generation,
        created_at=facts.created_at,
        expires_at=facts.expires_at,
    )
    key = f"{StatementKind.SANDBOX_LEASED}:{spec.name}:g{spec.generation}:{facts.created_at}"
    journal.append(StatementKind.SANDBOX_LEASED, spec.name, body, at=clock.now(), key=key)
    return sandbox
