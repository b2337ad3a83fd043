"""Where a round's money is written down: chosen when it starts, and the same for good."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from controller.adapters.ledger_by_url import check_url, open_ledger
from controller.adapters.ledger_sql import SqlLedger
from controller.domain.record import Record, field_faults
from controller.errors import InvalidInput
from controller.ports.clock import Clock
from controller.ports.named_files import read_named
from controller.settings import Settings
from controller.wiring.tools import local_files

CHOICE_FILE: Final = "ledger.json"
LEDGER_FILE: Final = "ledger.sqlite"


class LedgerPlace(Record):
    """A ledger's location, a path or a URL without a password, and the schema that the round has in a database."""

    schema_version: Literal["fairtrial.ledger-place/1"] = "fairtrial.ledger-place/1"
    location: str
    schema_name: str

    def open(self, clock: Clock) -> SqlLedger:
        """Open it to open attempts and to read; see `open_ledger` for what it raises."""
        return open_ledger(self.location, clock, schema=self.schema_name)


def ledger_of(settings: Settings, round_dir: Path, manifest_digest: str) -> LedgerPlace:
    """The ledger of a round: its own file, or what the setting named when the round began.

    Logical runs of two rounds may share a name, so each round has a schema of its own. Raises InvalidInput when the
    setting names another ledger than the round began with.
    """
    file = LedgerPlace(location=str(round_dir / LEDGER_FILE), schema_name=_schema_name(manifest_digest))
    chosen = _chosen(round_dir / CHOICE_FILE)
    began_in = chosen or (file if (round_dir / LEDGER_FILE).exists() else None)
    if not settings.ledger_url:
        return began_in or file
    asked = LedgerPlace(location=check_url(settings.ledger_url), schema_name=file.schema_name)
    if began_in is None:
        local_files().create_file(round_dir / CHOICE_FILE, asked.model_dump_json().encode())
    elif began_in != asked:
        raise InvalidInput(
            f"{round_dir}: this round began with another ledger, {began_in.location}",
            remedy="Unset FAIRTRIAL_LEDGER_URL for this round; a round keeps the ledger that it began with.",
        )
    return asked


def _schema_name(manifest_digest: str) -> str:
    return f"round_{manifest_digest.removeprefix('sha256:')[:20]}"


def _chosen(path: Path) -> LedgerPlace | None:
    try:
        return LedgerPlace.model_validate_json(read_named(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidInput(f"{path}: can't be read: {error.strerror}") from error
    except ValidationError as error:
        raise InvalidInput(f"{path}: {field_faults(error)[0]}") from None
