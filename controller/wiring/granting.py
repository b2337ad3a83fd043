"""Sign the permission to spend, and say so in the round's log."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from controller.adapters.files_durable import LocalFiles
from controller.adapters.system_clock import SystemClock
from controller.authorize import authorize, log_grant
from controller.conductor.rounds import refuse_closed
from controller.domain.authorization import Authorization, Caps, beyond
from controller.domain.instant import InstantMs
from controller.errors import InvalidInput
from controller.freeze import load_frozen
from controller.settings import Settings
from controller.wiring.rounds import read_round
from controller.wiring.tools import publisher


def grant(settings: Settings, round_dir: Path, caps: Mapping[str, object] | None, *, valid_hours: int) -> Authorization:
    """Sign an authorization. Without caps: the whole envelope of the manifest.

    Raises InvalidInput naming the cap that is not a sensible number or beyond the envelope, or for a closed round.
    """
    try:
        wanted = Caps.model_validate(caps) if caps else full_caps(round_dir)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidInput(f"cap {first['loc'][0]}: {first['msg']}") from error
    wide = beyond(wanted, full_caps(round_dir))
    if wide:
        raise InvalidInput(f"caps: beyond the frozen envelope: {'; '.join(wide)}", remedy="Ask for less.")
    clock = SystemClock()
    found = read_round(round_dir)
    try:
        refuse_closed(found.journal, found.manifest.round_id)
        granted = authorize(
            found.directory,
            found.digest,
            wanted,
            publisher(settings),
            clock,
            files=LocalFiles(),
            round_id=found.manifest.round_id,
            expires_at=InstantMs(clock.now() + valid_hours * 3_600_000),
        )
        log_grant(found.journal, granted, at=clock.now())
    finally:
        found.journal.close()
    return granted


def full_caps(round_dir: Path) -> Caps:
    """What the round may use at the very most, as frozen."""
    return load_frozen(round_dir).manifest.envelope
