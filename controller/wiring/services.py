"""The services of a round and their configurations: meter, result API, egress proxy, and the scripted model."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from controller.adapters.egress_envoy import EgressProxy
from controller.adapters.flows import load_flows
from controller.adapters.http_service import SOCKET_PATH_BYTES_MAX
from controller.adapters.rehearsal.service import RehearsalConfig
from controller.adapters.services import Service, health, healthy
from controller.api import ResultsConfig
from controller.domain.plan import UPSTREAMS, RoundManifest
from controller.domain.record import Record
from controller.errors import FairtrialError, InvalidInput, LedgerUnavailable
from controller.evidence.canonical import canonical
from controller.proxy.config import MeterConfig
from controller.settings import Settings
from controller.wiring.ledgers import LedgerPlace

LONGEST_SOCKET: Final = "results.sock"
SCRIPTS: Final = "scripts"
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./-]+")


class RoundServices:
    """Where the services of one round listen, and how they are started and ended."""

    def __init__(
        self,
        settings: Settings,
        round_dir: Path,
        manifest: RoundManifest,
        scripts: Mapping[str, str],
        ledger: LedgerPlace,
    ) -> None:
        self._settings = settings
        self._round_dir = round_dir
        self._manifest = manifest
        self._scripts = scripts  # what the scripted model plays, by task
        self._ledger = ledger
        self._sockets = runtime_directory(settings, round_dir, manifest)
        self.directory = round_dir / "services"

    @property
    def egress_socket(self) -> Path:
        """The one thing a machine can reach."""
        return self._sockets / "egress.sock"

    @property
    def artifacts_dir(self) -> Path:
        return self._round_dir / "artifacts"

    @property
    def grants_file(self) -> Path:
        return self._round_dir / "grants.sqlite"

    def rate_card_in_use(self) -> str:
        """Digest of the card that the running meter prices by. Raises LedgerUnavailable when it does not tell."""
        try:
            told = json.loads(health(self._sockets / "meter.sock").partition(b"\r\n\r\n")[2])
            return str(told["rate_card_digest"])
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise LedgerUnavailable(
                f"the meter does not say by which rate card it prices: {type(error).__name__}",
                remedy="Read services/meter.log in the round's directory, then run `fairtrial resume ROUND`.",
            ) from error

    @contextmanager
    def running(self) -> Iterator[None]:
        """Start or adopt every service, in the order in which they need one another; end them with the round.

        A controller that is killed or interrupted leaves them running, so that an attempt in flight is metered to its
        end and can be adopted; they end by themselves at their lifetime.
        """
        self.directory.mkdir(mode=0o700, exist_ok=True)
        services = self._services()
        try:
            try:
                for service in services:
                    service.start()
            finally:
                self._forget_scripts()
            yield
        except FairtrialError:
            _stop(services)
            raise
        _stop(services)

    def _services(self) -> list[Service]:
        providers = {lane.provider for lane in self._manifest.lanes}
        upstreams = {name: url for name, url in self._manifest.lane_policy.upstreams.items() if name in UPSTREAMS}
        services = []
        if "rehearsal" in providers:
            upstreams["rehearsal"] = f"unix:{self._sockets / 'model.sock'}"
            services.append(self._ours("rehearsal", self._rehearsal_config()))
        meter = MeterConfig(
            socket=str(self._sockets / "meter.sock"),
            ledger=self._ledger.location,
            ledger_schema=self._ledger.schema_name,
            rate_card=str(self._write("rate-card", self._manifest.rate_card)),
            upstreams=upstreams,
            keys=str(self._settings.keys_dir / "providers.json") if providers - {"rehearsal"} else None,
        )
        results = ResultsConfig(
            socket=str(self._sockets / "results.sock"), artifacts=str(self.artifacts_dir), grants=str(self.grants_file)
        )
        return [*services, self._ours("meter", meter), self._ours("results", results), self._egress()]

    def _rehearsal_config(self) -> RehearsalConfig:
        return RehearsalConfig(
            socket=str(self._sockets / "model.sock"),
            chance_seed=self._manifest.seed,
            scripts={task: str(self._write_script(task, text)) for task, text in self._scripts.items()},
        )

    def _write_script(self, task: str, text: str) -> Path:
        """Readable by its owner only, and only until the model has read it: a sealed task's script is its content."""
        directory = self._sockets / SCRIPTS
        directory.mkdir(mode=0o700, exist_ok=True)
        path = directory / f"{task}.json"
        path.write_text(text)
        return path

    def _forget_scripts(self) -> None:
        shutil.rmtree(self._sockets / SCRIPTS, ignore_errors=True)

    def _ours(self, name: str, config: MeterConfig | ResultsConfig | RehearsalConfig) -> Service:
        path = self._write(name, config)
        argv = [sys.executable, "-m", "controller.cli", "serve", name, "--config", str(path)]
        # libpq's variables name the password file and the certificates; nobody but the meter opens a database.
        database = {key: value for key, value in os.environ.items() if name == "meter" and key.startswith("PG")}
        return self._service(name, argv, Path(config.socket), database)

    def _egress(self) -> Service:
        proxy = EgressProxy(
            load_flows(self._settings.flows_file),
            listen=self.egress_socket,
            meter=self._sockets / "meter.sock",
            results=self._sockets / "results.sock",
        )
        path = self.directory / "egress-config.json"
        proxy.validate(proxy.write(path))
        return self._service("egress", list(proxy.argv(path)), self.egress_socket)

    def _service(
        self, name: str, argv: list[str], listens: Path, environment: Mapping[str, str] | None = None
    ) -> Service:
        return Service(
            name,
            argv,
            directory=self.directory,
            lifetime_seconds=self._settings.service_lifetime_seconds,
            ready=partial(healthy, listens),
            environment=environment,
        )

    def _write(self, name: str, config: Record) -> Path:
        path = self.directory / f"{name}-config.json"
        path.write_text(config.model_dump_json(indent=2))
        path.chmod(0o600)
        return path


def _stop(services: list[Service]) -> None:
    for service in reversed(services):
        service.stop()


def runtime_directory(settings: Settings, round_dir: Path, manifest: RoundManifest) -> Path:
    """A short private directory for the sockets of this round at this place.

    Services outlive a killed controller, so that another round in the place of a deleted one would meet the old ones.
    Raises InvalidInput when somebody else prepared the directory.
    """
    base = settings.runtime_dir
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = base.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o077:
        raise InvalidInput(
            f"{base}: must be a directory of mode 0700 that belongs to you",
            remedy="Remove it, or name another one with FAIRTRIAL_RUNTIME_DIR.",
        )
    name = hashlib.sha256(os.fsencode(round_dir.resolve()) + b"\0" + canonical(manifest)).hexdigest()[:12]
    path = base / name
    if len(os.fsencode(path / LONGEST_SOCKET)) > SOCKET_PATH_BYTES_MAX or not _PLAIN.fullmatch(str(base)):
        raise InvalidInput(
            f"{base}: a socket's path in it must be plain ASCII, of at most {SOCKET_PATH_BYTES_MAX} bytes",
            remedy="Name a shorter, plainer directory with FAIRTRIAL_RUNTIME_DIR.",
        )
    path.mkdir(mode=0o700, exist_ok=True)
    return path
