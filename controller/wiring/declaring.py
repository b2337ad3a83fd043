"""What persons have to say to a round's log: a stop, or a dispute."""

from __future__ import annotations

from pathlib import Path

from controller.adapters.files_durable import LocalFiles
from controller.adapters.system_clock import SystemClock
from controller.conductor import rounds
from controller.conductor.disputes import file_dispute
from controller.domain.bodies import DISPUTE_BYTES_MAX, DisputeFiled
from controller.domain.stops import StopEvent
from controller.errors import InvalidInput
from controller.publish.rules import leaks
from controller.settings import Settings
from controller.wiring.inputs import read_input
from controller.wiring.releasing import private_of
from controller.wiring.rounds import checkpoints_of, read_round


def stop_round(settings: Settings, round_dir: Path, note: str, event: str | None) -> None:
    """Stop a round: a pause, or with an event for good, and then signed at once.

    Raises InvalidInput for an event without a note, and for a closed round.
    """
    if event and not note.strip():
        raise InvalidInput(f"event {event}: no note", remedy="Say with --note what happened; it is published.")
    found = read_round(round_dir)
    try:
        declared = StopEvent(event) if event else None
        note = note.strip() or "no reason given"
        rounds.stop(found.journal, SystemClock(), found.manifest.round_id, note, event=declared)
        if declared is not None:
            checkpoints_of(settings, found).sign()
    finally:
        found.journal.close()


def dispute_round(settings: Settings, round_dir: Path, *, about: str, by: str, text_file: Path) -> DisputeFiled:
    """Put a dispute into the round's log, and sign it at once.

    Raises InvalidInput for a subject the round does not have, and for a text that could not be published.
    """
    text = read_input(text_file, bytes_max=DISPUTE_BYTES_MAX)
    found = read_round(round_dir)
    try:
        # What is in the log can't be taken out again, and would keep every later version from being published.
        files = {str(text_file): text, "by": by.encode(errors="replace")}
        if findings := [*leaks(files, private_of(settings, found))]:
            raise InvalidInput(
                "\n".join(findings), remedy="Ask for a text without it; a dispute is published as it is."
            )
        filed = file_dispute(
            found.directory, found.manifest, found.journal, SystemClock(), LocalFiles(), about=about, by=by, text=text
        )
        checkpoints_of(settings, found).sign()
    finally:
        found.journal.close()
    return filed
