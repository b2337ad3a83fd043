"""Disclose the sealed tasks of a retired round, and check what somebody disclosed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from controller.adapters.corpus_fs import TaskFile, read_task_file
from controller.adapters.opener_file import FileOpener
from controller.adapters.sealed_store import SealedStore
from controller.conductor.recompute import RoundRecompute
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.plan import RoundManifest, TaskEntry
from controller.domain.record import Record
from controller.domain.sealed import RevealMark
from controller.domain.statement import Statement
from controller.errors import BundleRejected, InvalidInput, InvalidTask, LeakFound
from controller.evidence import bundle as bundles
from controller.evidence.canonical import canonical, parse_lines
from controller.evidence.corpus import commitment
from controller.evidence.retirement import check_due, closed_at, due_at, next_started_at
from controller.evidence.reveal import REVEAL, Reveal, RevealedTask, check_reveal, listed, sealed_ids, task_files
from controller.evidence.sealing import (
    RESTORE,
    directory_of,
    open_curator,
    open_runner,
    open_verifier,
    opening_of_content,
)
from controller.evidence.trails import fold, judged_patches
from controller.ports.clock import Clock
from controller.ports.named_files import read_named
from controller.ports.opener import Opener
from controller.publish.rules import leaks
from controller.settings import Settings
from controller.wiring.checking import check_bundle
from controller.wiring.releasing import private_of
from controller.wiring.rounds import OpenRound, read_round
from controller.wiring.tasks import task_directories
from controller.wiring.tools import local_files

# SPDX ids of licences under which anybody may pass the source on.
PASSED_ON = frozenset(
    {
        "0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "GPL-2.0-only", "GPL-2.0-or-later",
        "GPL-3.0-only", "GPL-3.0-or-later", "ISC", "LGPL-2.1-only", "LGPL-2.1-or-later", "LGPL-3.0-only",
        "LGPL-3.0-or-later", "MIT", "MIT-0", "MPL-2.0", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib",
    }
)  # fmt: skip


class Disclosed(Record):
    """What a checked disclosure amounts to."""

    round_id: str
    tasks: int
    bases: int  # how many came with the tree that harnesses received
    revealed_at: InstantMs
    unproven: tuple[str, ...]  # what this check could not see


def reveal_round(
    settings: Settings, round_dir: Path, out: Path, *, curator_key: Path, next_round: Path | None, clock: Clock
) -> Reveal:
    """Write the disclosure of every sealed task of the round, and mark the tasks in their stores.

    Raises NotPublishable before it is due, SealedKeyMissing, BundleRejected for a task that does not open its
    commitment, LeakFound for a patch that holds a secret of ours, InvalidInput for a round without sealed tasks or an
    `out` that exists.
    """
    found = read_round(round_dir)
    try:
        return _reveal(settings, found, out, curator_key, next_round, clock.now())
    finally:
        found.journal.close()


def check_disclosure(
    settings: Settings, directory: Path, bundle: Path, *, key: Path | None, next_bundle: Path | None
) -> Disclosed:
    """Check a disclosure against the round's bundle, offline. The bundle is checked first. Raises BundleRejected."""
    manifest, digest, statements = _published(settings, bundle, key)
    files = local_files().read_directory(directory, bytes_max=bundles.BUNDLE_BYTES_MAX)
    reveal = check_reveal(files, manifest, digest, statements)
    for task in reveal.tasks:
        name = task.opening.id
        toml = _task_file(files.get(f"tasks/{name}/task.toml", b""), manifest.task(name))
        if toml.licence != task.licence:
            raise BundleRejected(f"disclosure: task {name}: its licence is {toml.licence}, not {task.licence}")
    unproven = [f"the base of {task.opening.id}" for task in reveal.tasks if not task.base_disclosed]
    if reveal.next_manifest_digest is not None:
        if next_bundle is None:
            unproven.append("that the next round had started (give its bundle with --next)")
        else:
            _check_next(settings, manifest, reveal, next_bundle, key)
    return Disclosed(
        round_id=reveal.round_id,
        tasks=len(reveal.tasks),
        bases=sum(task.base_disclosed for task in reveal.tasks),
        revealed_at=reveal.revealed_at,
        unproven=tuple(unproven),
    )


def _reveal(
    settings: Settings, found: OpenRound, out: Path, curator_key: Path, next_round: Path | None, at: InstantMs
) -> Reveal:
    manifest, statements = found.manifest, found.journal.statements()
    if not sealed_ids(manifest):
        raise InvalidInput(f"round {manifest.round_id} has no sealed tasks", remedy="There is nothing to disclose.")
    if os.path.lexists(out):
        raise InvalidInput(f"{out} exists; it is never overwritten", remedy="Name a directory that does not exist.")
    closed = closed_at(manifest, statements)
    following = read_round(next_round) if next_round else None
    started = None
    if following is not None:
        started = next_started_at(manifest, following.manifest, following.journal.statements())
        following.journal.close()
    check_due(manifest, closed, started, at=at)
    curator = FileOpener.open(curator_key, "curator")
    stores = {name: SealedStore(path) for name, path in task_directories(found.directory).items()}
    if lost := sorted(sealed_ids(manifest) - stores.keys()):
        raise InvalidTask(f"task {lost[0]}: this machine does not know in which store it lies", remedy=RESTORE)
    tasks: list[RevealedTask] = []
    files = _patches(settings, found, statements)
    for entry in manifest.tasks:
        if entry.sealed is not None:
            task, content = _open(entry, stores[entry.id], curator)
            tasks.append(task)
            files |= {f"tasks/{entry.id}/{name}": data for name, data in content.items()}
    is_early = at < due_at(closed, None)
    reveal = Reveal(
        round_id=manifest.round_id,
        manifest_digest=found.digest,
        closed_at=closed,
        revealed_at=at,
        next_manifest_digest=following.digest if following is not None and is_early else None,
        tasks=tuple(tasks),
        files=listed(files),
    )
    files[REVEAL] = canonical(reveal)
    check_reveal(files, manifest, found.digest, statements)  # what a stranger would refuse is not disclosed
    for task in tasks:  # before anybody can read it
        mark = RevealMark(
            id=task.opening.id, round_id=manifest.round_id, manifest_digest=found.digest, opening=task.opening
        )
        stores[task.opening.id].add_mark(mark, local_files())
    local_files().create_directory(out, files)
    return reveal


def _open(entry: TaskEntry, store: SealedStore, curator: Opener) -> tuple[RevealedTask, dict[str, bytes]]:
    """The task as disclosed, and its files. Raises BundleRejected unless content and salt open the commitment."""
    sealed = store.task(entry.id)
    if sealed.entry != entry or entry.sealed is None:
        raise InvalidTask(f"task {entry.id} in {store.directory} is not the one that was frozen", remedy=RESTORE)
    brief = open_runner(sealed, store.ciphertext(entry.id, "runner"), curator)
    whole = open_verifier(sealed, brief, store.ciphertext(entry.id, "verifier"), curator)
    rest = open_curator(sealed, store.ciphertext(entry.id, "curator"), curator)
    opening = opening_of_content(whole, rest.files)
    if commitment(opening, bytes.fromhex(rest.salt_hex)) != entry.sealed.commitment:
        raise BundleRejected(f"task {entry.id}: its content does not open its commitment", remedy=RESTORE)
    licence = _task_file(rest.files.get("task.toml", b""), entry).licence
    may_pass_on = licence in PASSED_ON
    directory = directory_of(whole, rest.files)
    revealed = RevealedTask(
        opening=opening,
        salt_hex=rest.salt_hex,
        licence=licence,
        base_disclosed=may_pass_on,
        files={name: sha256_digest(data) for name, data in directory.items()},
    )
    return revealed, task_files(directory, whole.base if may_pass_on else None)


def _task_file(data: bytes, entry: TaskEntry) -> TaskFile:
    """The sealed `task.toml`, if what the manifest published of the task is what stands in it."""
    task = read_task_file(data, f"task {entry.id}: task.toml")
    for field in ("id", "title", "stratum", "cluster", "visibility", "language", "soundness"):
        if getattr(task, field) != getattr(entry, field):
            raise BundleRejected(f"task {entry.id}: its {field} was published as {getattr(entry, field)!r}")
    return task


def _patches(settings: Settings, found: OpenRound, statements: tuple[Statement, ...]) -> dict[str, bytes]:
    """The patches that were withheld. Raises LeakFound when one holds a secret of ours."""
    judged = judged_patches(found.manifest, fold(statements), sealed=True)
    patches = {name: read_named(found.directory / name) for name, digest in judged.items() if digest is not None}
    if leaked := [*leaks(patches, private_of(settings, found))]:
        raise LeakFound("\n".join(f"round {found.manifest.round_id}: {leak}" for leak in leaked))
    return patches


def _published(settings: Settings, bundle: Path, key: Path | None) -> tuple[RoundManifest, str, tuple[Statement, ...]]:
    """Manifest, its digest and log of a bundle that passes the check."""
    check_bundle(settings, bundle, key)
    files: Mapping[str, bytes] = local_files().read_directory(bundle, bytes_max=bundles.BUNDLE_BYTES_MAX)
    manifest = RoundRecompute().manifest(files[bundles.MANIFEST])
    statements = parse_lines(files[bundles.STATEMENTS], Statement, bundles.STATEMENTS)
    return manifest, sha256_digest(files[bundles.MANIFEST]), statements


def _check_next(
    settings: Settings, manifest: RoundManifest, reveal: Reveal, next_bundle: Path, key: Path | None
) -> None:
    following, digest, statements = _published(settings, next_bundle, key)
    if digest != reveal.next_manifest_digest:
        raise BundleRejected(f"disclosure: the next round is {reveal.next_manifest_digest}, the bundle is of {digest}")
    started = next_started_at(manifest, following, statements)
    check_due(manifest, reveal.closed_at, started, at=reveal.revealed_at)
