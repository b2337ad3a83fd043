"""Open a round to look at it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.adapters.journal_sql import SqlJournal
from controller.conductor.checkpoints import Checkpoints
from controller.conductor.status import RoundStatus, common_fault, round_status
from controller.domain.plan import RoundManifest
from controller.domain.statement import StatementKind
from controller.errors import MachineUnsupported, RoundNotFound
from controller.freeze import load_frozen
from controller.settings import Settings
from controller.wiring.tools import local_files, publisher, system_clock

SECRET_FILE: Final = Path("round.secret")
JOURNAL_FILE: Final = "journal.sqlite"
REPORT_FILE: Final = "report.html"


@dataclass(frozen=True)
class OpenRound:
    """A frozen round and its log."""

    directory: Path
    manifest: RoundManifest
    digest: str
    journal: SqlJournal


def read_round(round_dir: Path) -> OpenRound:
    """The round and its log. Raises RoundNotFound, BadSignature."""
    try:
        directory = round_dir.resolve()
    except (OSError, RuntimeError) as error:  # Python says RuntimeError of a loop of links
        raise RoundNotFound(f"{round_dir}: {error}") from error
    frozen = load_frozen(directory)
    if not (directory / JOURNAL_FILE).is_file():
        # A new, empty one would let the round be conducted, and paid for, a second time.
        raise RoundNotFound(
            f"{directory / JOURNAL_FILE}: the round's log is missing",
            remedy="Restore it from a copy, or freeze the plan again.",
        )
    journal = SqlJournal.in_directory(directory)
    first = journal.find(StatementKind.ROUND_FROZEN, frozen.manifest.round_id)
    if first is None or first.body.get("manifest_digest") != frozen.digest:
        journal.close()
        raise RoundNotFound(
            f"{directory / JOURNAL_FILE}: this log does not begin with the round's manifest; it was replaced",
            remedy="Restore it from a copy, or freeze the plan again.",
        )
    return OpenRound(directory, frozen.manifest, frozen.digest, journal)


def checkpoints_of(settings: Settings, found: OpenRound) -> Checkpoints:
    """Where the states of the round's log are signed and kept."""
    return Checkpoints(
        found.directory,
        found.manifest.round_id,
        journal=found.journal,
        signer=publisher(settings),
        files=local_files(),
        clock=system_clock(),
    )


def read_status(round_dir: Path) -> RoundStatus:
    """How the round stands now."""
    found = read_round(round_dir)
    try:
        return round_status(found.manifest, found.journal.statements())
    finally:
        found.journal.close()


def require_working_sandboxes(round_dir: Path) -> None:
    """Raises MachineUnsupported when no attempt of the round got as far as its harness."""
    found = read_round(round_dir)
    try:
        fault = common_fault(found.journal.statements())
    finally:
        found.journal.close()
    if fault is not None:
        raise MachineUnsupported(
            f"round {found.manifest.round_id}: no attempt reached its harness; the last one: {fault}",
            remedy=f"Run `fairtrial doctor`, and read the logs in {found.directory / 'services'}.",
        )
