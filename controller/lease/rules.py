"""What to lease for an attempt and for its verification."""

from __future__ import annotations

from controller.domain.ids import AttemptId, Digest
from controller.domain.limits import VM_MARGIN_SECONDS, SandboxLimits
from controller.ports.pool import SandboxRole, SandboxSpec


def runner_spec(
    attempt: AttemptId, *, generation: int, limits: SandboxLimits, image: Digest, owner: str, egress_socket: str
) -> SandboxSpec:
    """The machine the harness runs in. It outlives the 30 minutes by a fixed margin and no more."""
    return SandboxSpec(
        name=attempt,
        role=SandboxRole.RUNNER,
        image_digest=image,
        limits=limits,
        lifetime_seconds=limits.agent_seconds + VM_MARGIN_SECONDS,
        generation=generation,
        owner=owner,
        egress_socket=egress_socket,
    )


def verifier_name(attempt: AttemptId) -> str:
    """`ver-<attempt without its prefix>`: one verifier machine per attempt."""
    return "ver-" + attempt.removeprefix("att-")


def verifier_spec(
    attempt: AttemptId, *, generation: int, limits: SandboxLimits, image: Digest, owner: str, verify_seconds: int
) -> SandboxSpec:
    """The machine the patch is judged in: no network device, no secret."""
    return SandboxSpec(
        name=verifier_name(attempt),
        role=SandboxRole.VERIFIER,
        image_digest=image,
        limits=limits,
        lifetime_seconds=verify_seconds + VM_MARGIN_SECONDS,
        generation=generation,
        owner=owner,
        egress_socket=None,
    )
