"""Look at this machine: what a round needs, whether it is there, and what to do if it is not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final

from controller.adapters.image_store import ImageStore
from controller.domain.record import Record

PROGRAMS: Final = {
    "qemu-system-x86_64": "runs the disposable machines",
    "qemu-img": "makes their disks",
    "socat": "joins a machine's one egress path to the proxy",
    "mmdebstrap": "bakes images",
    "mke2fs": "bakes images",
    "podman": "bakes container images",
    "npm": "fetches pinned harnesses and sources at bake time",
    "git": "makes and applies patches",
}
IMAGES: Final = ("vm-runner", "vm-verifier")
SYSTEM_PATH: Final = "/usr/sbin:/sbin"


class Finding(Record):
    """One thing looked at."""

    subject: str
    ok: bool
    required: bool
    detail: str
    remedy: str


def find_program(name: str) -> str | None:
    """A program on PATH or in the system directories."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")


def examine(*, state_dir: Path, images_dir: Path, free_disk_bytes_min: int, fleet_size: int) -> tuple[Finding, ...]:
    """Everything worth knowing before a round. Reads only."""
    programs = tuple(
        Finding(
            subject=name,
            ok=find_program(name) is not None,
            required=True,
            detail=find_program(name) or f"absent; it {purpose}",
            remedy="Run `make setup`.",
        )
        for name, purpose in PROGRAMS.items()
    )
    return (*programs, disk(state_dir, free_disk_bytes_min), _fleet(fleet_size), _acceleration(), *_images(images_dir))


def disk(state_dir: Path, free_bytes_min: int) -> Finding:
    """Whether a round has the room it needs."""
    place = next(path for path in (state_dir, *state_dir.parents) if path.exists())
    free = shutil.disk_usage(place).free
    return Finding(
        subject="disk",
        ok=free >= free_bytes_min,
        required=True,
        detail=f"{free / 2**30:.0f} GiB free at {place}; a round needs {free_bytes_min / 2**30:.0f}",
        remedy="Free disk space, or set FAIRTRIAL_STATE_DIR to a place that has it.",
    )


def _fleet(size: int) -> Finding:
    cpus = os.cpu_count() or 1
    detail = f"{size} machines at once on {cpus} processors"
    return Finding(subject="fleet", ok=True, required=False, detail=detail, remedy="")


def _acceleration() -> Finding:
    usable = os.access("/dev/kvm", os.R_OK | os.W_OK)
    detail = "/dev/kvm can be opened; a probe decides at the first lease" if usable else "none: machines are emulated"
    return Finding(subject="kvm", ok=usable, required=False, detail=detail, remedy="Rounds run, about 5 times slower.")


def _images(images_dir: Path) -> tuple[Finding, ...]:
    store = ImageStore(images_dir)
    found = {name: store.find(name) for name in IMAGES}
    return tuple(
        Finding(
            subject=name,
            ok=image is not None,
            required=False,
            detail=image.digest if image else "not baked yet",
            remedy="Run `fairtrial images build`.",
        )
        for name, image in found.items()
    )
