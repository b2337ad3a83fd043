"""Step 11: what a release adds is refused by both checkers unless it follows, and an approval is exactly that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.evidence import bundle
from controller.evidence.approval import approved_of, sign_approval
from controller.evidence.envelope import INDEX_TYPE, sign
from controller.offline.canonical import dumps, loads
from controller.offline.log import read_log
from controller.offline.plan import Plan, read_plan
from controller.offline.refusal import Refused
from controller.offline.release import check_approval
from controller.offline.signatures import PublicKey, payload_of
from tests.unit.evidence.test_release_step import CHANGES, excerpts
from tests.unit.offline.test_agreement import full_step, offline, offline_step, ring
from tests.unit.publish.test_approval import approve
from tests.world.recorded_round import measured
from tests.world.signer import FixedSigner
from tests.world.tampering import Files, resigned

PERSON, STRANGER, PUBLISHER = FixedSigner("person"), FixedSigner("stranger"), FixedSigner()
LATER = InstantMs(2_000_000_000_000)


@pytest.mark.parametrize("name", CHANGES)
def test_an_excerpt_of_something_else_is_refused(good_bundle: Files, name: str) -> None:
    files = dict(good_bundle)
    excerpts(files, CHANGES[name][0])
    files[bundle.SUMS] = bundle.sums(files)
    files = resigned(files)
    assert (offline_step(files), full_step(files)) == (11, 11)


@pytest.mark.parametrize(
    "change",
    [
        lambda files: files.__setitem__(bundle.AGGREGATE, files[bundle.AGGREGATE].replace(b"shown", b"told", 1)),
        lambda files: files.__setitem__(bundle.AGGREGATE, b"{}"),
        lambda files: files.__setitem__(bundle.EXCERPTS, b""),
    ],
)
def test_what_does_not_follow_is_refused(good_bundle: Files, change: Callable[[Files], None]) -> None:
    files = dict(good_bundle)
    change(files)
    files[bundle.SUMS] = bundle.sums(files)
    files = resigned(files)
    assert (offline_step(files), full_step(files)) == (11, 11)


@pytest.mark.parametrize("change", [lambda sums: sums[:-1], lambda sums: b"", lambda sums: sums + sums[:66]])
def test_sums_that_differ_are_refused(good_bundle: Files, change: Callable[[bytes], bytes]) -> None:
    files = resigned({**good_bundle, bundle.SUMS: change(good_bundle[bundle.SUMS])})
    assert (offline_step(files), full_step(files)) == (11, 11)


def plan_of(files: Files, *approvers: FixedSigner) -> Plan:
    keys = tuple(PublicKey(signer.key.id, signer.key.public_hex) for signer in approvers)
    return replace(read_plan(loads(files[bundle.MANIFEST], "m"), "m"), approvers=keys)


def approved(files: Files, signer: FixedSigner, *, at: InstantMs = LATER) -> Files:
    return {**files, bundle.APPROVAL: sign_approval(approved_of("small", files), signer, at)}


def test_an_approval_is_by_a_person_of_the_manifest_of_exactly_this_and_after_the_close(good_bundle: Files) -> None:
    log = read_log(good_bundle[bundle.STATEMENTS])[0]
    plan = plan_of(good_bundle, PERSON, PUBLISHER)
    told = check_approval(plan, approved(good_bundle, PERSON), ring(), log)
    assert told == "approved by a person the manifest names"
    assert check_approval(plan, good_bundle, ring(), log) == "a rehearsal needs no approval"
    other = {**approved(good_bundle, PERSON), bundle.REPORT: b"<p>Rehearsal, said otherwise."}
    for bad in (
        approved(good_bundle, STRANGER),
        approved(good_bundle, PUBLISHER),
        approved(good_bundle, PERSON, at=InstantMs(0)),
        other,
        {**good_bundle, bundle.APPROVAL: b"{}"},
    ):
        with pytest.raises(Refused, match=r"approval\.dsse\.json"):
            check_approval(plan, bad, ring(), log)
    with pytest.raises(Refused, match="no person approved this report"):
        check_approval(replace(plan, kind="measured"), good_bundle, ring(), log)
    assert sha256_digest(other[bundle.REPORT]) != sha256_digest(good_bundle[bundle.REPORT])


def test_a_measured_round_that_a_person_approved_is_accepted(tmp_path: Path) -> None:
    found = measured(tmp_path / "small")
    approve(found)
    files = LocalFiles().read_directory(found.publish().path, bytes_max=bundle.BUNDLE_BYTES_MAX)
    report = offline(files)
    assert report.passed, report
    assert report.kind == "measured"
    assert report.steps[10].detail.endswith("approved by a person the manifest names")
    del files[bundle.APPROVAL]
    files[bundle.SUMS] = bundle.sums(files)
    assert (offline_step(resigned(files)), full_step(resigned(files))) == (11, 11)


@pytest.mark.parametrize(
    ("version", "supersedes", "correction"), [(1, sha256_digest(b""), None), (1, None, "why"), (2, None, "why")]
)
def test_a_later_version_says_what_it_supersedes_and_why(
    good_bundle: Files, version: int, supersedes: str | None, correction: str | None
) -> None:
    index = loads(payload_of(good_bundle[bundle.INDEX], INDEX_TYPE, ring(), "i"), "i")
    changed = dumps({**index, "version": version, "supersedes": supersedes, "correction": correction})
    report = offline({**good_bundle, bundle.INDEX: sign(INDEX_TYPE, changed, PUBLISHER)})
    assert (report.steps[0].passed, "says why" in report.steps[0].detail) == (False, True)
