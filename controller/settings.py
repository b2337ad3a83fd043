"""One typed settings object: where things lie and how much of this machine a round may use.

Every field can be set in the environment as FAIRTRIAL_<FIELD>, for example FAIRTRIAL_FLEET_SIZE=4.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError

from controller.domain.record import Record
from controller.errors import InvalidInput

PROJECT: Final = Path(__file__).resolve().parent.parent
_VM_BYTES: Final = 9 * 2**30  # an 8 GiB guest and its emulator
_PREFIX: Final = "FAIRTRIAL_"
_DIGITS: Final = re.compile("[0-9]{1,18}")  # a number that Python reads, and no digits of other scripts


class Settings(Record):
    """Read once per command. Paths are absolute; sizes are in the named unit."""

    project: Path = PROJECT
    state_dir: Path = PROJECT / ".state"
    rounds_dir: Path = PROJECT / "rounds"
    runtime_dir: Path = Path("/nonexistent")  # sockets; short, because a Unix socket's path holds 107 bytes
    pool: Literal["qemu", "podman"] = "qemu"
    fleet_size: int = Field(default=1, ge=1, le=1000)  # none would wait for ever
    free_disk_bytes_min: int = Field(default=8 * 2**30, ge=0)  # a round is refused before it starts when less is free
    # A PostgreSQL database for ledgers that several meters share, without a password; a file per round when empty.
    ledger_url: str = ""
    # Meter, result API and egress proxy end by themselves after this; `timeout` would take 0 for no limit.
    service_lifetime_seconds: int = Field(default=24 * 3600, ge=1, le=90 * 24 * 3600)

    @property
    def images_dir(self) -> Path:
        return self.state_dir / "images"

    @property
    def sources_dir(self) -> Path:
        return self.state_dir / "sources"

    @property
    def pool_dir(self) -> Path:
        return self.state_dir / "pool"

    @property
    def keys_dir(self) -> Path:
        return self.state_dir / "keys"

    @property
    def holdouts_dir(self) -> Path:
        return self.state_dir / "holdouts"

    @property
    def relays_file(self) -> Path:
        return self.project / "policies" / "randomness" / "relays.toml"

    @property
    def flows_file(self) -> Path:
        return self.project / "policies" / "network" / "flows.toml"


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Defaults for this machine, overridden by the environment. Raises InvalidInput naming the variable."""
    values: dict[str, object] = {
        "fleet_size": fleet_size(os.cpu_count() or 1, _memory_bytes()),
        "runtime_dir": Path(f"/tmp/fairtrial-{os.getuid()}"),  # noqa: S108  made with mode 0700 and checked for its owner
    }
    for name, field in Settings.model_fields.items():
        text = environment.get(_PREFIX + name.upper())
        if text is None:
            continue
        if field.annotation is int:
            values[name] = int(text) if _DIGITS.fullmatch(text) else text
        elif field.annotation is Path:
            values[name] = Path(text).absolute() if text.strip() else text
        else:
            values[name] = text
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise InvalidInput(
            f"environment variable {_PREFIX}{name.upper()}: {first['msg']}", remedy="Correct or unset the variable."
        ) from error


def fleet_size(cpus: int, memory_bytes: int) -> int:
    """How many machines at once: one per processor, as far as memory allows, at least one."""
    return max(1, min(cpus, memory_bytes // _VM_BYTES))


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
