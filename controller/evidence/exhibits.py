"""The contents of a bundle as typed values, each read when a step first asks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from controller.domain.authorization import Authorization
from controller.domain.bodies import RunReconciled
from controller.domain.dataset import LogicalRunRow
from controller.domain.ids import sha256_digest
from controller.domain.keys import KeyRing
from controller.domain.plan import LogicalRun, RoundManifest
from controller.domain.provider_report import ProviderEvidence
from controller.domain.reconciliation import AttemptRecord
from controller.domain.statement import Statement, StatementKind
from controller.domain.usage import MeteredRequest, Refusal
from controller.errors import BundleRejected
from controller.evidence import bundle
from controller.evidence.canonical import canonical, parse, parse_lines
from controller.evidence.envelope import AUTHORIZATION_TYPE, check
from controller.evidence.note import Checkpoint, check_checkpoint, log_origin
from controller.evidence.trails import Trails, fold
from controller.evidence.witness import Witness
from controller.ports.timestamps import TimeAuthority


class Recompute(Protocol):
    """What the check needs from the protocol and the stages above it. Every function is pure."""

    def manifest(self, data: bytes) -> RoundManifest:
        """Parse the protocol's manifest. Raises NotCanonical."""
        ...

    def schedule(self, manifest: RoundManifest) -> tuple[LogicalRun, ...]:
        """The schedule that the frozen seed gives."""
        ...

    def reconciliation(
        self,
        manifest: RoundManifest,
        run: LogicalRun,
        provider: ProviderEvidence,
        attempts: Sequence[AttemptRecord],
        *,
        scored: bool,
    ) -> RunReconciled:
        """What follows for one logical run from what the provider says of it."""
        ...

    def dataset(self, manifest: RoundManifest, manifest_digest: str, statements: Sequence[Statement]) -> bytes:
        """`dataset.jsonl` as the statements give it."""
        ...

    def analysis(self, manifest: RoundManifest, dataset: bytes) -> bytes:
        """`analysis.json` as the dataset gives it."""
        ...

    def aggregate(self, manifest: RoundManifest, dataset: bytes, analysis: bytes) -> bytes:
        """`aggregate.json` as the analysis gives it."""
        ...

    def release_gates(self, manifest: RoundManifest, analysis: bytes) -> Sequence[str]:
        """What of the protocol's own conditions forbids to release a measured round; empty when nothing does."""
        ...


@dataclass(frozen=True)
class Outsiders:
    """Whose word is asked for besides the publisher's. Who is named here must have vouched for the whole round."""

    witnesses: tuple[Witness, ...] = ()
    authority: TimeAuthority | None = None


class Exhibits:
    """Files, the keys that are trusted, and what the files say. Reading raises EvidenceError."""

    def __init__(
        self, files: Mapping[str, bytes], keys: KeyRing, recompute: Recompute, outsiders: Outsiders | None = None
    ) -> None:
        self.files = files
        self.keys = keys
        self.recompute = recompute
        self.outsiders = outsiders or Outsiders()

    @cached_property
    def index(self) -> bundle.BundleIndex:
        return bundle.check_index(self.files, self.keys)

    @cached_property
    def manifest(self) -> RoundManifest:
        return self.recompute.manifest(self.files[bundle.MANIFEST])

    @cached_property
    def manifest_digest(self) -> str:
        return sha256_digest(self.files[bundle.MANIFEST])

    @cached_property
    def scheduled(self) -> dict[str, LogicalRun]:
        """The logical runs of the manifest by id."""
        return {run.id: run for run in self.manifest.schedule}

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        return parse_lines(self.files[bundle.STATEMENTS], Statement, bundle.STATEMENTS)

    @cached_property
    def statement_lines(self) -> tuple[bytes, ...]:
        """The bytes of each statement, which reading `statements` has proven canonical."""
        count = len(self.statements)
        return tuple(self.files[bundle.STATEMENTS].split(b"\n")[:count])

    @cached_property
    def checkpoint(self) -> Checkpoint:
        """The signed state of the whole log."""
        return self._signed(bundle.CHECKPOINT)

    @cached_property
    def signed_states(self) -> dict[int, Checkpoint]:
        """Every state that was signed while the log grew, by size."""
        sizes = {name: size for name in self.files if (size := bundle.checkpoint_size(name)) is not None}
        found = {size: self._signed(name) for name, size in sizes.items()}
        for size, checkpoint in found.items():
            if checkpoint.size != size:
                raise BundleRejected(f"{bundle.checkpoint_name(size)} signs {checkpoint.size} statements")
        return found

    def _signed(self, name: str) -> Checkpoint:
        return check_checkpoint(self.files[name], log_origin(self.manifest.round_id), self.keys, name)

    @cached_property
    def closed_at(self) -> int:
        """Where the log closes the round; its end when it does not."""
        closings = (s.sequence for s in self.statements if s.kind is StatementKind.ROUND_CLOSED)
        return next(closings, len(self.statements))

    @cached_property
    def trails(self) -> Trails:
        return fold(self.statements)

    @cached_property
    def grants(self) -> tuple[Authorization, ...]:
        """Every signed grant, oldest first."""
        numbered = sorted((number, name) for name in self.files if (number := bundle.grant_number(name)) is not None)
        return tuple(
            parse(check(self.files[name], AUTHORIZATION_TYPE, self.keys, name), Authorization, name)
            for _, name in numbered
        )

    @cached_property
    def grants_by_digest(self) -> dict[str, Authorization]:
        """The grants by the digest of their payload, as statements name them."""
        return {sha256_digest(canonical(grant)): grant for grant in self.grants}

    @cached_property
    def ledger(self) -> tuple[MeteredRequest, ...]:
        return parse_lines(self.files[bundle.LEDGER], MeteredRequest, bundle.LEDGER)

    @cached_property
    def refusals(self) -> tuple[Refusal, ...]:
        return parse_lines(self.files[bundle.REFUSALS], Refusal, bundle.REFUSALS)

    @cached_property
    def dataset(self) -> tuple[LogicalRunRow, ...]:
        return parse_lines(self.files[bundle.DATASET], LogicalRunRow, bundle.DATASET)
