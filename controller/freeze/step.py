"""Read the plan and its files; write the round's directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from controller.domain.ids import sha256_digest
from controller.domain.json_files import parse_record
from controller.domain.keys import KeyRing
from controller.domain.limits import TASKS_MAX
from controller.domain.plan import RoundManifest
from controller.domain.rate_card import CARD_BYTES_MAX
from controller.domain.record import Record
from controller.errors import InvalidInput, InvalidPlan, RoundNotFound
from controller.evidence.bundle import KEYS, MANIFEST, MANIFEST_ENVELOPE
from controller.evidence.canonical import canonical, parse
from controller.evidence.envelope import MANIFEST_TYPE, check, sign
from controller.freeze import rules
from controller.freeze.plan import RoundPlan, parse_plan
from controller.freeze.rules import FreezeInputs
from controller.ports.clock import Clock
from controller.ports.files import DurableFiles
from controller.ports.named_files import read_named
from controller.ports.signer import Signer
from controller.protocols.manifests import parse_manifest

R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Frozen:
    """A frozen round. The digest is of the bytes of `manifest.json`, and is the round's identity."""

    manifest: RoundManifest
    digest: str


def read_plan(path: Path) -> RoundPlan:
    """The plan in that file. Raises InvalidPlan with one line per problem."""
    try:
        return parse_plan(read_named(path), path.name)
    except OSError as error:
        raise InvalidPlan(f"{path}: {error.strerror}") from error


def find_tasks(patterns: Sequence[str], plan_path: Path, *, field: str = "tasks") -> tuple[Path, ...]:
    """Every task directory that these paths and globs of the plan's field name, once each, in byte order.

    Raises InvalidPlan naming each pattern that finds none.
    """
    found: set[Path] = set()
    empty: list[str] = []
    for position, pattern in enumerate(patterns):
        try:
            matches = {path.parent.resolve() for path in plan_path.parent.glob(f"{pattern.rstrip('/')}/task.toml")}
        except (ValueError, OSError, RuntimeError) as error:  # a misplaced `**`; a path too long; a loop of links
            empty.append(f"{plan_path.name}: {field}[{position}]: {pattern!r}: {error}")
            continue
        if not matches:
            empty.append(f"{plan_path.name}: {field}[{position}]: {pattern!r} finds no directory with a task.toml")
        found |= matches
    if len(found) > TASKS_MAX:
        empty.append(f"{plan_path.name}: {field}: {len(found)} directories, more than {TASKS_MAX}")
    if empty:
        raise InvalidPlan("\n".join(empty))
    return tuple(sorted(found))


def read_named_record(plan_path: Path, field: str, name: str, kind: type[R]) -> R:
    """The record in the file that a field of the plan names. Raises InvalidPlan naming file and field."""
    path = plan_path.parent / name
    try:
        return parse_record(read_named(path, bytes_max=CARD_BYTES_MAX), kind, path.name)
    except OSError as error:
        raise InvalidPlan(f"{plan_path.name}: {field}: {name}: {error.strerror}") from error
    except InvalidInput as error:
        raise InvalidPlan(str(error)) from None


def freeze(inputs: FreezeInputs, out: Path, signer: Signer, clock: Clock, *, files: DurableFiles) -> Frozen:
    """Write a new round directory with the signed manifest and the key that signed it.

    Raises InvalidPlan with every problem, InvalidInput when the directory exists, DiskFull.
    """
    manifest = rules.manifest_of(inputs, at=clock.now())
    data = canonical(manifest)
    files.create_directory(
        out,
        {
            MANIFEST: data,
            MANIFEST_ENVELOPE: sign(MANIFEST_TYPE, data, signer),
            KEYS: canonical(KeyRing(keys=(signer.key,))),
        },
    )
    return Frozen(manifest, sha256_digest(data))


def load_frozen(round_dir: Path, keys: KeyRing | None = None) -> Frozen:
    """The manifest of a round, if a trusted key signed it; without `keys`, the keys written at freeze.

    Raises RoundNotFound, BadSignature or NotCanonical.
    """
    try:
        data = read_named(round_dir / MANIFEST)
        envelope = read_named(round_dir / MANIFEST_ENVELOPE)
        ring = keys or parse(read_named(round_dir / KEYS), KeyRing, KEYS)
    except OSError as error:
        raise RoundNotFound(f"{round_dir}: {error.filename and Path(error.filename).name}: {error.strerror}") from error
    if check(envelope, MANIFEST_TYPE, ring, MANIFEST_ENVELOPE) != data:
        raise RoundNotFound(f"{round_dir}: {MANIFEST} is not what was signed")
    return Frozen(parse_manifest(data, MANIFEST), sha256_digest(data))
