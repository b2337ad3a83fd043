from __future__ import annotations

import base64
import dataclasses
from pathlib import Path

import pytest

from controller.adapters.files_durable import LocalFiles
from controller.conductor.recompute import RoundRecompute
from controller.domain import bodies
from controller.domain.ids import sha256_digest
from controller.domain.provider_report import Figure
from controller.domain.statement import StatementKind
from controller.errors import InvalidInput, LeakFound, NotPublishable, RoundNotFound
from controller.evidence import bundle
from controller.evidence.canonical import parse
from controller.evidence.envelope import INDEX_TYPE, check
from controller.publish import AttemptSecrets, Names, Private, publish
from controller.publish.rules import leaks, open_gates
from tests.world.recorded_round import RecordedRound, conducted
from tests.world.signer import FixedSigner

SIGNER = FixedSigner()
TOKEN = b"rt_" + b"0123456789abcdef" * 4


@pytest.fixture
def found(tmp_path: Path) -> RecordedRound:
    return conducted(tmp_path / "small")


def _longer(found: RecordedRound) -> RecordedRound:
    found.report += "<p>Third edition."
    return found


def _index(path: Path) -> bundle.BundleIndex:
    payload = check((path / bundle.INDEX).read_bytes(), INDEX_TYPE, SIGNER.ring)
    return parse(payload, bundle.BundleIndex)


def test_versions_follow_one_another_and_none_is_overwritten(found: RecordedRound) -> None:
    first = found.publish()
    before = LocalFiles().read_directory(first.path, bytes_max=bundle.BUNDLE_BYTES_MAX)
    assert (first.version, first.report.passed, first.report.kind) == (1, True, "rehearsal")
    assert found.publish().version == 1
    found.report += "<p>Second edition."
    with pytest.raises(NotPublishable, match="v1 is published, and this version differs from it"):
        found.publish()
    second = found.publish(correction="A number was wrong.")
    assert (second.version, second.path.name) == (2, "v2")
    payload = check((first.path / bundle.INDEX).read_bytes(), INDEX_TYPE, SIGNER.ring)
    assert _index(second.path).supersedes == sha256_digest(payload)
    assert _index(second.path).correction == "A number was wrong."
    assert (_index(first.path).supersedes, _index(first.path).correction) == (None, None)
    assert "v2: A number was wrong." in (second.path / "report.html").read_text()
    assert found.publish().version == 2, "nothing changed, so nothing is to be said"
    assert found.publish(correction="A number was wrong.").version == 2
    third = _longer(found).publish(correction="And another.")
    assert third.version == 3
    assert "v2: A number was wrong.<p>v3: And another." in (third.path / "report.html").read_text()
    assert LocalFiles().read_directory(first.path, bytes_max=bundle.BUNDLE_BYTES_MAX) == before


def test_every_open_gate_is_named(tmp_path: Path) -> None:
    found = conducted(tmp_path / "small")
    scores = [s for s in found.statements if s.kind is StatementKind.RUN_SCORED]
    found.statements = found.statements[: found.statements.index(scores[-1])]
    (found.directory / "analysis.json").unlink()
    found.report = "<h1>Results</h1>"
    with pytest.raises(NotPublishable) as caught:
        found.publish()
    lines = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in lines] == ["closed", "settled", "analysed", "marked"]
    assert not (tmp_path / "release").exists()


def test_a_stopped_round_may_be_published_as_incomplete(tmp_path: Path) -> None:
    found = conducted(tmp_path / "small")
    scored = [i for i, s in enumerate(found.statements) if s.kind is StatementKind.RUN_SCORED]
    del found.statements[scored[0] + 1 :]
    found.ledger = [row for row in found.ledger if row.attempt_id == found.ledger[0].attempt_id]
    found.refusals = []
    for path in list((found.directory / "patches").iterdir()):
        if path.stem != found.ledger[0].attempt_id:
            path.unlink()
    found.log(StatementKind.OPERATOR_ACT, "small", bodies.OperatorAct(act="stop", note="enough"))
    total = next(row for row in found.statements if row.kind is StatementKind.ATTEMPT_SETTLED).body
    figures = {"usd": total["usd"], "floor_usd": total["usd"], "figure": Figure.EXACT}
    found.close(bodies.RoundSettled(attempts=1, requests=total["requests"], invalid_runs=(), **figures))
    report = found.publish().report
    assert report.passed
    assert "7 halted or stopped" in report.steps[5].detail


def test_a_measured_round_in_a_container_has_an_open_gate(found: RecordedRound) -> None:
    manifest = found.manifest.model_copy(update={"kind": "measured"})
    start = next(s for s in found.statements if s.kind is StatementKind.ROUND_STARTED)
    weak = start.model_copy(update={"body": {**start.body, "isolation": "container"}})
    others = [s for s in found.statements if s is not start]
    gates = open_gates(manifest, [weak, *others], dataset=b"", analysis=b"", report="", is_signed=True)
    assert list(gates) == ["isolated: a measured round ran in container isolation"]
    assert not list(open_gates(manifest, found.statements, dataset=b"", analysis=b"", report="", is_signed=True))


def test_a_log_that_nobody_signed_is_not_published(found: RecordedRound) -> None:
    records = found.records()
    (found.directory / bundle.checkpoint_name(len(found.statements))).unlink()
    with pytest.raises(NotPublishable, match="signed: no checkpoint signs the"):
        publish(
            found.directory,
            found.directory.parent / "release",
            records,
            files=LocalFiles(),
            signer=SIGNER,
            recompute=RoundRecompute(),
        )


def test_what_a_stranger_would_refuse_is_not_published(found: RecordedRound) -> None:
    found.ledger[0] = found.ledger[0].model_copy(update={"usd": "0.000001"})
    with pytest.raises(NotPublishable, match=r"check step 7 \(charges\): .* is charged"):
        found.publish()
    assert not (found.directory.parent / "release").exists()


SECRET = b"correct horse battery"
CANARY = b"canary-of-this-attempt-0123456789"
PRIVATE = Private(
    secrets=(SECRET,),
    attempts={"att-1": AttemptSecrets(tokens=(b"token-of-an-attempt-42",), canaries=(CANARY,))},
    paths=("/home/me",),
    names=Names(users=("meredith",), hosts=("mybox-1717",)),
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (TOKEN, "a run-scoped token or canary"),
        (b"-----BEGIN PRIVATE KEY-----\n", "a private key"),
        (b"see /home/me/rounds/1", "names a path of this machine"),
        (b"built on mybox-1717.", "names this machine or its user"),
        (b"by meredith", "names this machine or its user"),
        (SECRET, "a known secret"),
        (SECRET[::-1], "a known secret"),
        (SECRET.hex().encode(), "a known secret"),
        (base64.b64encode(b"user:" + SECRET + b":x"), "a known secret"),
        (b" ".join(bytes([byte]) for byte in SECRET), "a known secret"),
        (b"token-of-an-attempt-42", "a known secret"),
        (CANARY, "a canary of an attempt"),
        (base64.b64encode(CANARY), "a canary of an attempt"),
    ],
)
def test_a_leak_in_any_file_stops_the_release(found: RecordedRound, text: bytes, kind: str) -> None:
    patch = next((found.directory / "patches").iterdir())
    patch.write_bytes(b"+ " + text + b"\n")
    with pytest.raises(LeakFound) as caught:
        found.publish(private=PRIVATE)
    assert f"patches/{patch.name} holds {kind}" in str(caught.value) or f"{patch.name} {kind}" in str(caught.value)
    assert text.decode() not in str(caught.value)
    assert not (found.directory.parent / "release").exists()


@pytest.mark.parametrize(
    "text",
    [
        b"Bearer of news",
        b"/home/melanie/x",
        b"x/home/me",
        b"/home/me.txt",
        b"meredithian mybox-17170 root",
        b"the horse was correct; its battery was not",
    ],
)
def test_ordinary_text_is_no_leak(text: bytes) -> None:
    assert not list(leaks({"a": text}, dataclasses.replace(PRIVATE, paths=("/home/me", "/"), secrets=(SECRET, b"me"))))


def test_a_binary_secret_is_found_as_it_is() -> None:
    binary = bytes(range(190, 222))
    assert list(leaks({"a": b"x" + binary + b"y"}, Private(secrets=(binary,)))) == ["a holds a known secret"]


def test_only_known_names_are_bundled(found: RecordedRound) -> None:
    with pytest.raises(RoundNotFound):
        publish(
            found.directory.parent,
            found.directory.parent / "release",
            found.records(),
            files=LocalFiles(),
            signer=SIGNER,
            recompute=RoundRecompute(),
        )
    with pytest.raises(InvalidInput, match=r"journal\.sqlite.*missing: \['SHA256SUMS', .*'analysis"):
        bundle.build({"journal.sqlite": b""}, SIGNER, round_id="small", manifest_digest=found.manifest_digest)
