"""Settle a round: its log and ledger, the usage reports an operator brings, and a retail policy if one is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import RootModel, StringConstraints, ValidationError

from controller.adapters.system_clock import SystemClock
from controller.conductor.settlement import UsageReports, close, draw_up
from controller.conductor.settlement_report import Settlement, settlement
from controller.domain.json_files import read_json
from controller.domain.statement import StatementKind
from controller.errors import InvalidInput
from controller.settings import Settings
from controller.settle import read_reports
from controller.wiring.cards import read_retail
from controller.wiring.inputs import read_input
from controller.wiring.ledgers import ledger_of
from controller.wiring.rounds import checkpoints_of, read_round

KEY_IDS_FILE: Final = "key-ids.json"
REPORT_BYTES_MAX: Final = 64 * 2**20  # a page holds a day of minutes at most
KEY_IDS_FORM: Final = 'Write it as {"<key name>": "<the provider\'s id of that key>"}; see the guide for operators.'


class _KeyIds(RootModel[dict[str, Annotated[str, StringConstraints(pattern=r"^[!-~]{1,200}$")]]]):
    """Key name to the provider's id of that key."""


def settle_round(
    settings: Settings,
    round_dir: Path,
    usage_reports: Sequence[Path] = (),
    *,
    retail_policy: Path | None = None,
    dry_run: bool = False,
) -> Settlement:
    """Close the round's books, or with `dry_run` only show what closing them would write.

    Without a policy of retail terms, the frozen one is shown if there is one.

    Raises InvalidInput for a round that is not over, and for a report or policy that can't be used.
    """
    usage = _usage(settings, usage_reports) if usage_reports else None
    retail = read_retail(retail_policy) if retail_policy else None
    found, clock = read_round(round_dir), SystemClock()
    try:
        ledger = ledger_of(settings, found.directory, found.digest).open(clock)
        try:
            books = draw_up(found.manifest, found.journal, ledger, clock, usage=usage)
        finally:
            ledger.close()
        if not dry_run:
            close(books, found.journal, clock)
            checkpoints_of(settings, found).sign()
        closed = found.journal.find(StatementKind.ROUND_CLOSED, found.manifest.round_id) is not None
        return settlement(books, closed=closed, retail=retail or found.manifest.retail_policy)
    finally:
        found.journal.close()


def _usage(settings: Settings, paths: Sequence[Path]) -> UsageReports:
    reports = read_reports([(str(path), read_input(path, bytes_max=REPORT_BYTES_MAX)) for path in paths])
    ids = settings.keys_dir / KEY_IDS_FILE
    if not ids.is_file():
        raise InvalidInput(f"{ids}: needed to find the round's keys in a usage report", remedy=KEY_IDS_FORM)
    value = read_json(read_input(ids, bytes_max=REPORT_BYTES_MAX), str(ids))
    try:
        return UsageReports(reports, _KeyIds.model_validate(value).root)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in fault["loc"]) or "(whole file)"
        raise InvalidInput(f"{ids}: {place}: {fault['msg']}", remedy=KEY_IDS_FORM) from None
