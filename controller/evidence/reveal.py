"""The disclosure of a round's sealed tasks: what is in it, and how a stranger checks it.

reveal.json                      salts, digests, and the list of the files
tasks/<id>/task.toml, prompt.md  as they were sealed
tasks/<id>/verifier/...
tasks/<id>/bug.patch, base.json  only where the source's licence lets us pass it on
patches/<attempt>.patch          what was judged of these tasks, withheld from the bundle until now

It needs no signature of its own: what it says of a task opens a commitment in the signed manifest, or it is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from pydantic import Field

from controller.domain.ids import Digest, Slug, sha256_digest
from controller.domain.instant import InstantMs, instant_text
from controller.domain.plan import RoundManifest
from controller.domain.record import Record
from controller.domain.sealed import Hex32, Opening
from controller.domain.statement import Statement, StatementKind
from controller.domain.tree import REGULAR, TreeFile, listing_digest, tree_digest
from controller.errors import BundleRejected
from controller.evidence.bundle import IndexedFile
from controller.evidence.canonical import canonical, parse
from controller.evidence.corpus import commitment
from controller.evidence.retirement import due_at
from controller.evidence.trails import fold, judged_patches

REVEAL: Final = "reveal.json"
ALWAYS: Final = re.compile(r"task\.toml|prompt\.md|verifier/.+")
WITH_BASE: Final = "bug.patch"  # shows parts of the source
BASE: Final = "base.json"
BAD: Final = "Do not rely on this disclosure; ask its publisher for the original."


class BaseTree(Record):
    """`base.json`: the tree that harnesses received."""

    schema_version: Literal["fairtrial.base/1"] = "fairtrial.base/1"
    files: dict[str, TreeFile]


class RevealedTask(Record):
    """What the commitment stood for, and the digest of every file of the task's directory, disclosed or not."""

    opening: Opening
    salt_hex: Hex32
    licence: str | None
    base_disclosed: bool
    files: dict[str, Digest]


class Reveal(Record):
    """`reveal.json`. `next_manifest_digest` is of the round whose start made the disclosure due before its day."""

    schema_version: Literal["fairtrial.reveal/1"] = "fairtrial.reveal/1"
    round_id: Slug
    manifest_digest: Digest
    closed_at: InstantMs
    revealed_at: InstantMs
    next_manifest_digest: Digest | None
    tasks: tuple[RevealedTask, ...] = Field(min_length=1)
    files: tuple[IndexedFile, ...]


def sealed_ids(manifest: RoundManifest) -> frozenset[str]:
    """The ids of the tasks whose content the manifest does not name."""
    return frozenset(task.id for task in manifest.tasks if task.sealed is not None)


def task_files(directory: Mapping[str, bytes], base: Mapping[str, TreeFile] | None) -> dict[str, bytes]:
    """What is disclosed of a task's directory; with its base where that may be passed on. Never the gold patch."""
    files = {name: data for name, data in directory.items() if ALWAYS.fullmatch(name)}
    if base is None:
        return files
    files |= {name: data for name, data in directory.items() if name == WITH_BASE}
    return {**files, BASE: canonical(BaseTree(files=dict(base)))}


def listed(files: Mapping[str, bytes]) -> tuple[IndexedFile, ...]:
    """The index of the files, in byte order of the names."""
    return tuple(
        IndexedFile(name=name, bytes=len(files[name]), digest=sha256_digest(files[name]))
        for name in sorted(files, key=str.encode)
    )


def check_reveal(
    files: Mapping[str, bytes], manifest: RoundManifest, manifest_digest: str, statements: Sequence[Statement]
) -> Reveal:
    """The disclosure, if it is one of this round and everything in it opens what the manifest committed to.

    Raises NotCanonical, or BundleRejected naming the task and what is wrong.
    """
    if REVEAL not in files:
        raise _bad(f"{REVEAL} is missing")
    reveal = parse(files[REVEAL], Reveal, REVEAL)
    content = {name: data for name, data in files.items() if name != REVEAL}
    _check_files(reveal, content)
    if (reveal.round_id, reveal.manifest_digest) != (manifest.round_id, manifest_digest):
        raise _bad(f"it is of round {reveal.round_id}, {reveal.manifest_digest}")
    _check_time(reveal, statements)
    _check_complete(reveal, manifest)
    commitments = {task.id: task.sealed.commitment for task in manifest.tasks if task.sealed is not None}
    for task in reveal.tasks:
        name = task.opening.id
        if commitment(task.opening, bytes.fromhex(task.salt_hex)) != commitments[name]:
            raise _bad(f"task {name} does not open its commitment")
        prefix = f"tasks/{name}/"
        _check_task(task, {n.removeprefix(prefix): d for n, d in content.items() if n.startswith(prefix)})
    judged = judged_patches(manifest, fold(statements), sealed=True)
    patches = {name: sha256_digest(data) for name, data in content.items() if name.startswith("patches/")}
    if patches != {name: digest for name, digest in judged.items() if digest is not None}:
        raise _bad("the patches are not those that were judged of these tasks")
    return reveal


def _check_files(reveal: Reveal, content: Mapping[str, bytes]) -> None:
    found = listed(content)
    if found != reveal.files:
        odd = sorted({entry.name for entry in set(found) ^ set(reveal.files)})
        raise _bad(f"{odd[0] if odd else REVEAL} is not what the index names")
    places = ("patches/", *(f"tasks/{task.opening.id}/" for task in reveal.tasks))
    for name in sorted(content):
        if not name.startswith(places):
            raise _bad(f"{name} belongs to no disclosed task")


def _check_time(reveal: Reveal, statements: Sequence[Statement]) -> None:
    closed = [s.at for s in statements if s.kind is StatementKind.ROUND_CLOSED]
    if closed[-1:] != [reveal.closed_at]:
        raise _bad(f"the log does not close the round at {instant_text(reveal.closed_at)}")
    earliest = reveal.closed_at if reveal.next_manifest_digest else due_at(reveal.closed_at, None)
    if reveal.revealed_at < earliest:
        raise _bad(f"it is dated {instant_text(reveal.revealed_at)}, before {instant_text(earliest)}")


def _check_complete(reveal: Reveal, manifest: RoundManifest) -> None:
    named = [task.opening.id for task in reveal.tasks]
    expected = sealed_ids(manifest)
    if odd := sorted(expected.symmetric_difference(named)):
        raise _bad(f"task {odd[0]} {'is missing' if odd[0] in expected else 'was never sealed in this round'}")
    if named != sorted(named) or len(named) != len(expected):
        raise _bad("the tasks are not in order, each of them once")


def _check_task(task: RevealedTask, files: Mapping[str, bytes]) -> None:
    """Every digest that the commitment stands for follows from what is disclosed, or from the digest of what is not."""
    opening, listing = task.opening, task.files
    expected = {name for name in listing if ALWAYS.fullmatch(name) or (task.base_disclosed and name == WITH_BASE)}
    if task.base_disclosed:
        expected.add(BASE)
    if files.keys() != expected:
        raise _bad(f"task {opening.id}: {sorted(files.keys() ^ expected)[0]} is missing, or was not to be disclosed")
    for name in sorted(files.keys() - {BASE}):
        if listing.get(name) != sha256_digest(files[name]):
            raise _bad(f"task {opening.id}: {name} is not the file that was sealed")
    verifier = {
        name.removeprefix("verifier/"): digest for name, digest in listing.items() if name.startswith("verifier/")
    }
    found = {
        "task_digest": _listing(listing),
        "prompt_digest": listing.get("prompt.md"),
        "verifier_digest": _listing(verifier),
        "gold_digest": listing.get("gold.patch"),
    }
    if task.base_disclosed:
        found["base_digest"] = tree_digest(parse(files[BASE], BaseTree, f"tasks/{opening.id}/{BASE}").files)
    for field, digest in found.items():
        if digest != getattr(opening, field):
            raise _bad(f"task {opening.id}: its {field} does not follow from its files")


def _listing(files: Mapping[str, str]) -> str:
    return listing_digest({name: (REGULAR, digest) for name, digest in files.items()})


def _bad(why: str) -> BundleRejected:
    return BundleRejected(f"disclosure: {why}", remedy=BAD)
