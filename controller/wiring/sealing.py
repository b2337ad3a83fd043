"""Make the keys of sealed tasks, and seal task directories into a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from controller.adapters.corpus_fs import load_directory
from controller.adapters.opener_file import FileOpener, read_recipient
from controller.adapters.sealed_store import store_files
from controller.adapters.system_entropy import SystemEntropy
from controller.adapters.task_sources import TaskSources
from controller.domain.sealed import Part, RecipientKey, SealedTask
from controller.errors import InvalidTask
from controller.evidence.sealing import check_recipients, seal
from controller.settings import Settings
from controller.verify import count_cases
from controller.wiring.tools import local_files


def make_key(settings: Settings, part: Part, out: Path | None) -> RecipientKey:
    """A new private key where this machine looks for it, or in `out`; its public half lies beside it."""
    return FileOpener.create(out or settings.keys_dir / f"sealed-{part}.pem", part).key


def seal_tasks(
    settings: Settings, directories: Sequence[Path], recipients: Sequence[Path], out: Path
) -> tuple[SealedTask, ...]:
    """Write a new store with every task, or nothing.

    Raises InvalidTask for a directory that is no task, is public or is there twice; InvalidInput for the recipients or
    an existing `out`.
    """
    readers = [read_recipient(path) for path in recipients]
    check_recipients(readers)
    sources, entropy = TaskSources(settings.sources_dir), SystemEntropy()
    sealed = {}
    for directory in directories:
        bundle, others = load_directory(directory, sources)
        name = bundle.entry.id
        count_cases(bundle)  # nobody will see them again before an attempt has been paid for
        if bundle.entry.visibility == "public":
            raise InvalidTask(f'task {name} is public: say `visibility = "sealed"` in its task.toml to seal it')
        if name in sealed:
            raise InvalidTask(f"task {name} is given twice")
        sealed[name] = seal(bundle, others, readers, entropy)
    local_files().create_directory(out, store_files(sealed))
    return tuple(task for task, _ in sealed.values())
