"""The signed states of a round's log: at freeze, at each start, every hour while it runs, and at its close.

They are kept in the round's directory and published. Whoever has one can prove a later rewriting of what it covers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller.domain.keys import KeyRing
from controller.errors import LogRewritten, NotCanonical
from controller.evidence.bundle import checkpoint_name, checkpoint_size
from controller.evidence.log import check_continues, checkpoint_of, leaves
from controller.evidence.note import Checkpoint, check_checkpoint, log_origin, sign_checkpoint
from controller.ports.clock import Clock
from controller.ports.files import DurableFiles
from controller.ports.journal import Journal
from controller.ports.named_files import read_named
from controller.ports.signer import Signer

INTERVAL_SECONDS: Final = 3600.0
CHECKPOINT_BYTES_MAX: Final = 4096


class Checkpoints:
    """Signs the log of one round. One per process; the caller's thread does the work."""

    def __init__(
        self, round_dir: Path, round_id: str, *, journal: Journal, signer: Signer, files: DurableFiles, clock: Clock
    ) -> None:
        self._round_dir = round_dir
        self._round_id = round_id
        self._journal, self._signer, self._files, self._clock = journal, signer, files, clock
        self._signed_at: float | None = None

    def sign(self) -> Path:
        """Sign the log as it is now; the file. For the same log it is the same file with the same bytes.

        Every statement is read again first, as a tree that is only added to would carry a fault on for ever. Raises
        LogRewritten when the statements do not give the root that was kept while the log grew, or when a state that
        was signed before is no prefix of them.
        """
        signed = [*self._signed()]  # first, since another process may sign a larger state from here on
        size, root = self._journal.running_root()
        statements = self._journal.statements()
        # Another process may have appended in between, so the size is known before and after only.
        if not size <= len(statements) <= self._journal.running_root()[0]:
            raise LogRewritten(f"the root was kept over {size} statements, and the log has {len(statements)}")
        spelled = leaves(statements)[:size]
        found = checkpoint_of(self._round_id, spelled)
        if found.root != root:
            raise LogRewritten(f"the {size} statements do not give the root that was kept while the log grew")
        check_continues(spelled, signed)
        path = self._round_dir / checkpoint_name(size)
        self._files.create_file(path, sign_checkpoint(found, self._signer))
        self._signed_at = self._clock.monotonic_seconds()
        return path

    def tick(self) -> None:
        """Sign when an hour has passed since the last signature of this process."""
        now = self._clock.monotonic_seconds()
        if self._signed_at is None or now - self._signed_at >= INTERVAL_SECONDS:
            self.sign()

    def _signed(self) -> Iterator[Checkpoint]:
        """What was signed before. Raises BadSignature or NotCanonical for a file that was not written by us."""
        ring, origin = KeyRing(keys=(self._signer.key,)), log_origin(self._round_id)
        for size, path in checkpoint_paths(self._round_dir).items():
            found = check_checkpoint(read_named(path, bytes_max=CHECKPOINT_BYTES_MAX), origin, ring, path.name)
            if found.size != size:
                raise NotCanonical(f"{path}: signs {found.size} statements, which is not what its name says")
            yield found


def checkpoint_paths(round_dir: Path) -> dict[int, Path]:
    """The kept states of a round's log by size, the smallest first."""
    sizes = (checkpoint_size(path.relative_to(round_dir).as_posix()) for path in round_dir.glob("checkpoints/*.txt"))
    return {size: round_dir / checkpoint_name(size) for size in sorted(size for size in sizes if size is not None)}
