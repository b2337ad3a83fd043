"""One machine with keys, a store of two sealed tasks and rounds on them, made through the command line."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller.adapters.journal_sql import SqlJournal
from controller.adapters.ledger_sqlite import SqliteLedger
from controller.adapters.sealed_store import SealedStore
from controller.adapters.signer_file import create_private
from controller.cli.__main__ import main
from controller.domain.instant import InstantMs
from controller.domain.statement import StatementKind
from controller.evidence.canonical import dumps, loads
from controller.ports.ledger import MeterLife
from controller.settings import Settings, read_settings
from controller.wiring.round_tasks import RoundTasks
from controller.wiring.rounds import read_round
from controller.wiring.tasks import remember_tasks
from tests.world.recorded_round import inputs
from tests.world.signer import FixedSigner
from tests.world.simulation import Simulation, started
from tests.world.task_directory import write_task

NAMES: Final = ("deltas", "omegas")
LICENCES: Final = ("MIT", None)  # the source of the first may be passed on, that of the second not


def run(*arguments: object) -> None:
    """One command that succeeds."""
    assert main([str(argument) for argument in arguments]) == 0


@dataclass(frozen=True)
class Site:
    """Where everything lies. The environment must name `directory / "state"` as the state's directory."""

    directory: Path

    @property
    def settings(self) -> Settings:
        return read_settings({"FAIRTRIAL_STATE_DIR": str(self.directory / "state")})

    @property
    def store(self) -> Path:
        return self.directory / "store"

    @property
    def keys(self) -> Path:
        return self.directory / "state" / "keys"

    @property
    def curator_key(self) -> Path:
        return self.directory / "curator" / "curator.pem"

    @property
    def recipients(self) -> tuple[str, ...]:
        """`--to` with each of the three public keys."""
        private = (self.keys / "sealed-runner.pem", self.keys / "sealed-verifier.pem", self.curator_key)
        return tuple(part for path in private for part in ("--to", str(path.with_suffix(".pub.json"))))

    @property
    def round(self) -> Path:
        return self.directory / "small" / "round"

    @property
    def bundle(self) -> Path:
        return self.directory / "release" / "v1"

    def simulated(self, round_id: str = "small") -> Simulation:
        """A frozen and authorized round on the sealed tasks, its log on the disk."""
        entries = [task.entry for task in SealedStore(self.store).tasks()]
        given = inputs(replicates=1, given=entries, round_id=round_id)
        found = Simulation(self.directory / round_id, given=given, journal=SqlJournal.in_directory)
        remember_tasks(found.directory, {entry.id: self.store for entry in entries})
        return found

    def tasks(self, simulation: Simulation) -> RoundTasks:
        """The contents of the round's tasks, as a controller on this machine has them."""
        return RoundTasks(self.settings, simulation.frozen.manifest, dict.fromkeys(NAMES, self.store))

    def closed_at(self) -> InstantMs:
        """When the round was closed."""
        found = read_round(self.round)
        statement = found.journal.find(StatementKind.ROUND_CLOSED, "small")
        found.journal.close()
        assert statement is not None
        return statement.at

    def copied(self, to: Path) -> Site:
        """The same at another place."""
        shutil.copytree(self.directory, to, dirs_exist_ok=True)
        copy = Site(to)
        if copy.round.is_dir():
            remember_tasks(copy.round, dict.fromkeys(NAMES, copy.store))
        return copy


def make_site(directory: Path) -> Site:
    """Keys and a store; the directories that were sealed are gone."""
    site = Site(directory)
    (directory / "state").mkdir(parents=True)
    for part in ("runner", "verifier"):
        run("task", "key", part)
    run("task", "key", "curator", "--out", site.curator_key)
    create_private(site.keys / "publisher.pem", FixedSigner()._private)  # simulated rounds are signed by it
    directories = [
        write_task(directory / "state", name, visibility="sealed", licence=licence)  # beside the cache of sources
        for name, licence in zip(NAMES, LICENCES, strict=True)
    ]
    for path in directories:
        (path / "README.md").write_text("What curators should know.\n")
    run("task", "seal", *directories, *site.recipients, "--out", site.store)
    for path in directories:
        shutil.rmtree(path)
    return site


def close_round(site: Site) -> None:
    """Conduct, settle, analyse and publish a round."""
    found = site.simulated()
    ledger = SqliteLedger(found.directory / "ledger.sqlite", found.clock, meter=MeterLife(place="here", life="1"))
    found.ledger = ledger  # type: ignore[assignment]
    found.tasks = site.tasks(found)
    started(found, 1)
    found.conduct(found.world())
    ledger.close()
    found.journal.close()  # type: ignore[attr-defined]
    run("settle", site.round)
    run("analyse", site.round)
    run("publish", site.round, "--out", site.directory / "release")


def let_rehearsals_have_them(site: Site) -> None:
    """Say of the tasks that they can be played; whether they could be is not what is tested."""
    for name in NAMES:
        path = site.store / name / "task.json"
        path.write_bytes(dumps({**loads(path.read_bytes(), name), "is_rehearsable": True}))
