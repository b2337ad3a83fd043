"""Single adapters, made from the settings."""

from __future__ import annotations

from controller.adapters.files_durable import LocalFiles
from controller.adapters.signer_file import FileSigner
from controller.adapters.system_clock import SystemClock
from controller.ports.clock import Clock
from controller.ports.files import DurableFiles
from controller.settings import Settings


def system_clock() -> Clock:
    """The clock of this machine."""
    return SystemClock()


def local_files() -> DurableFiles:
    """Durable files on a local disk."""
    return LocalFiles()


def publisher(settings: Settings) -> FileSigner:
    """The key that signs manifests, grants and bundles; made at first use."""
    return FileSigner.open(settings.keys_dir / "publisher.pem")
