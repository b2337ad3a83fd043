"""A person's approval of the exact report of a round."""

from __future__ import annotations

from pathlib import Path

from controller.adapters.person_key import new_person_key, open_person_key
from controller.adapters.system_clock import SystemClock
from controller.conductor.recompute import RoundRecompute
from controller.domain.keys import KeyRing
from controller.errors import InvalidInput, NotPublishable
from controller.evidence import bundle
from controller.evidence.approval import APPROVED, Approval, approval_name, approved_of, check_approval, sign_approval
from controller.settings import Settings
from controller.wiring.inputs import read_input
from controller.wiring.rounds import OpenRound, read_round
from controller.wiring.tools import local_files, publisher


def make_key(path: Path, passphrase: bytes) -> KeyRing:
    """Make a person's key; its public half, in the form that a plan's `approvers` file has."""
    return KeyRing(keys=(new_person_key(path, passphrase).key,))


def approve_round(settings: Settings, round_dir: Path, key: Path, passphrase: bytes) -> Approval:
    """Sign the report as it lies in the round's directory. An approval that is there already is left as it is.

    Raises NotPublishable for a round whose numbers are missing or do not follow from its log, InvalidInput for a key
    that the manifest does not name.
    """
    found = read_round(round_dir)
    try:
        files = _files(found)
        _check_numbers(found, files)
    finally:
        found.journal.close()
    signer = open_person_key(key, passphrase)
    if signer.key not in found.manifest.approvers:
        raise InvalidInput(
            f"{key}: {signer.key.id} is not among the approvers of round {found.manifest.round_id}",
            remedy="Use a key that the plan named before the freeze; approvers can't be added afterwards.",
        )
    approved = approved_of(found.manifest.round_id, files)
    path = found.directory / approval_name(approved)
    if not path.is_file():
        local_files().create_file(path, sign_approval(approved, signer, SystemClock().now()))
    publishers = KeyRing(keys=(publisher(settings).key,))
    return check_approval(path.read_bytes(), approved, found.manifest, publishers)


def _files(found: OpenRound) -> dict[str, bytes]:
    absent = [name for name in APPROVED if not (found.directory / name).is_file()]
    if absent:
        raise NotPublishable(f"round {found.manifest.round_id}: analysed: {', '.join(absent)} is missing")
    return {name: read_input(found.directory / name) for name in APPROVED}


def _check_numbers(found: OpenRound, files: dict[str, bytes]) -> None:
    """A person's name must not stand under numbers that the log does not give."""
    recompute = RoundRecompute()
    dataset = recompute.dataset(found.manifest, found.digest, found.journal.statements())
    wrong = bundle.DATASET if files[bundle.DATASET] != dataset else None
    if wrong is None and files[bundle.ANALYSIS] != recompute.analysis(found.manifest, dataset):
        wrong = bundle.ANALYSIS
    if wrong is not None:
        raise NotPublishable(
            f"round {found.manifest.round_id}: analysed: {wrong} does not follow from the log",
            remedy="Run `fairtrial analyse ROUND` and read the report again.",
        )
