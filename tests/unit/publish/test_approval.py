"""A measured round leaves with a person's approval of exactly what leaves, and not without."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.conductor.recompute import RoundRecompute
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.errors import NotApproved, NotPublishable
from controller.evidence import bundle
from controller.evidence.approval import Approved, approval_name, approved_of, sign_approval
from controller.evidence.check import examine
from controller.publish import Version
from tests.world.recorded_round import RecordedRound, conducted, measured
from tests.world.signer import FixedSigner

PUBLISHER, PERSON, STRANGER = FixedSigner(), FixedSigner("a person"), FixedSigner("a stranger")
LATER = InstantMs(2_000_000_000_000)


@pytest.fixture
def found(tmp_path: Path) -> RecordedRound:
    return measured(tmp_path / "small")


def what_lies_there(found: RecordedRound, report: str | None = None) -> Approved:
    names = (bundle.MANIFEST, bundle.DATASET, bundle.ANALYSIS)
    files = {name: (found.directory / name).read_bytes() for name in names}
    return approved_of("small", {**files, bundle.REPORT: (report or found.report).encode()})


def approve(
    found: RecordedRound,
    approved: Approved | None = None,
    *,
    by: FixedSigner = PERSON,
    at: InstantMs = LATER,
    under: Approved | None = None,
) -> None:
    """Lay an approval where the round keeps it; by default of exactly what lies there, by a person, after the close."""
    approved = approved or what_lies_there(found)
    path = found.directory / approval_name(under or approved)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(sign_approval(approved, by, at))


def test_without_an_approval_nothing_leaves_and_the_report_to_read_is_named(found: RecordedRound) -> None:
    with pytest.raises(NotApproved, match=sha256_digest(found.report.encode())) as caught:
        found.publish()
    assert (found.directory / "report.html").read_text() == found.report
    assert str(found.directory / "report.html") in str(caught.value)
    assert not (found.directory.parent / "release").exists()


def test_an_approved_round_is_published_with_its_approval_and_checked(found: RecordedRound) -> None:
    approve(found)
    published = found.publish()
    step = published.report.steps[-1]
    assert (step.number, step.name, step.passed) == (11, "release", True)
    assert step.detail.endswith("approved by a person the manifest names")
    assert (published.path / bundle.APPROVAL).is_file()
    assert found.publish().version == 1, "unchanged"


def test_a_report_that_changes_needs_a_new_approval(found: RecordedRound) -> None:
    approve(found)
    found.publish()
    found.report += "<p>More."
    with pytest.raises(NotApproved):
        found.publish(correction="More is said.")
    told = found.told((Version(number=1, correction=None), Version(number=2, correction="More is said.")))
    assert (found.directory / "report.html").read_text() == told
    approve(found, what_lies_there(found, told))
    assert found.publish(correction="More is said.").version == 2
    with pytest.raises(NotApproved):
        found.report += "<p>And more."
        found.publish(correction="Once again.")


@pytest.mark.parametrize("name", ["manifest_digest", "dataset_digest", "analysis_digest", "report_digest"])
def test_an_approval_of_something_else_is_none(found: RecordedRound, name: str) -> None:
    right = what_lies_there(found)
    wrong = right.model_copy(update={name: sha256_digest(b"something else")})
    approve(found, wrong)
    with pytest.raises(NotApproved):
        found.publish()
    approve(found, wrong, under=right)
    with pytest.raises(NotPublishable, match=r"step 11 \(release\): .* it approves another"):
        found.publish()


@pytest.mark.parametrize("signer", [STRANGER, PUBLISHER], ids=["stranger", "publisher"])
def test_nobody_but_a_person_whom_the_manifest_names_can_approve(found: RecordedRound, signer: FixedSigner) -> None:
    approve(found, by=signer)
    with pytest.raises(NotPublishable, match=r"step 11 \(release\): .* not a trusted key"):
        found.publish()


def test_a_key_that_also_publishes_is_nobodys_approval(found: RecordedRound) -> None:
    approve(found)
    published = found.publish()
    files = LocalFiles().read_directory(published.path, bytes_max=bundle.BUNDLE_BYTES_MAX)
    both = PUBLISHER.ring.model_copy(update={"keys": (*PUBLISHER.ring.keys, PERSON.key)})
    step = examine(files, RoundRecompute(), keys=both).steps[-1]
    assert step.passed is False
    assert "the manifest names no approver beside the publisher" in step.detail


def test_an_approval_from_before_the_close_is_none(found: RecordedRound) -> None:
    approve(found, at=InstantMs(found.statements[-1].at - 1))
    with pytest.raises(NotPublishable, match="given before the round was closed"):
        found.publish()


def test_a_rehearsal_needs_none_and_a_wrong_one_is_still_refused(tmp_path: Path) -> None:
    found = conducted(tmp_path / "small")
    approve(found, by=STRANGER)
    with pytest.raises(NotPublishable, match="not a trusted key"):
        found.publish()
    next((found.directory / "approvals").iterdir()).unlink()
    assert found.publish().report.steps[-1].detail.endswith("a rehearsal needs no approval")


def test_a_publisher_can_not_drop_the_approval_afterwards(found: RecordedRound) -> None:
    approve(found)
    files = LocalFiles().read_directory(found.publish().path, bytes_max=bundle.BUNDLE_BYTES_MAX)
    rest = {name: data for name, data in files.items() if name not in (bundle.INDEX, bundle.APPROVAL, bundle.SUMS)}
    rest[bundle.SUMS] = bundle.sums(rest)
    again = bundle.build(rest, PUBLISHER, round_id="small", manifest_digest=found.manifest_digest)
    step = examine(again, RoundRecompute(), keys=PUBLISHER.ring).steps[-1]
    assert (step.passed, step.detail) == (False, "approval.dsse.json is missing: no person approved this report")
