"""The defects of the conformance folder beside those of `tampering.TAMPERS`: name, step, what is wrong, what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from controller.domain.instant import InstantMs
from controller.evidence import bundle
from controller.evidence.envelope import AUTHORIZATION_TYPE, MANIFEST_TYPE
from controller.evidence.log import checkpoint_of
from controller.evidence.note import sign_checkpoint
from tests.world.bundle_defects import (
    DEEP,
    PERSON,
    RIVAL,
    Defect,
    approval,
    carried,
    changed,
    conclusion,
    cut,
    doubled_line,
    envelope,
    exchanged_lines,
    first,
    flipped,
    index_fields,
    index_files,
    index_of,
    listed,
    padded,
    put,
    spelled_log,
    spelled_manifest,
    swapped,
    unknown_as_zero,
    without,
    without_run,
)
from tests.world.tampering import SIGNER, Files, K, alter, cut_row, row, statements_of

OTHER: Final = "sha256:" + "0" * 64
B: Final = bundle

UNSIGNED: Final[list[Defect]] = [
    ("empty-index", 1, "the index has no bytes", put(B.INDEX, b"")),
    ("index-truncated", 1, "the index ends too soon", cut(B.INDEX, -1)),
    ("index-absent", 1, "there is no index", without(B.INDEX)),
    ("index-bit-flipped", 1, "one bit of the index", flipped(B.INDEX)),
    ("index-white-space", 1, "a newline after the index", changed(B.INDEX, lambda data: data + b"\n")),
    ("index-padding-bits", 1, "the signature in a second spelling of base64", padded(B.INDEX)),
    ("index-payload-newline", 1, "a newline after the payload's base64",
     envelope(B.INDEX, lambda e: e.update(payload=e["payload"] + "\n"))),
    ("index-signed-twice", 1, "two signatures",
     envelope(B.INDEX, lambda e: e.update(signatures=e["signatures"] * 2))),
    ("index-unsigned", 1, "no signature", envelope(B.INDEX, lambda e: e.update(signatures=[]))),
    ("index-key-misnamed", 1, "the id of another key",
     envelope(B.INDEX, lambda e: e["signatures"][0].update(keyid=RIVAL.key.id))),
    ("index-signature-of-zeros", 1, "64 zeros as signature",
     envelope(B.INDEX, lambda e: e["signatures"][0].update(sig="A" * 86 + "=="))),
    ("manifest-envelope-as-index", 1, "another envelope of the same key in the place of the index",
     lambda files: files.__setitem__(B.INDEX, files[B.MANIFEST_ENVELOPE])),
    ("log-truncated", 1, "the log ends too soon", cut(B.STATEMENTS, -300)),
    ("report-bit-flipped", 1, "one bit of the report", flipped(B.REPORT, 20)),
    ("ledger-absent", 1, "the ledger is gone", without(B.LEDGER)),
    ("stranger-file", 1, "a file that nobody listed", put("notes.txt", b"hello\n")),
    ("files-exchanged", 1, "dataset and analysis in each other's places", swapped(B.DATASET, B.ANALYSIS)),
    ("older-checkpoint-laid-back", 1, "checkpoint.txt is that of an older state",
     lambda files: files.__setitem__(B.CHECKPOINT, files[B.checkpoint_name(3)])),
    ("index-by-another-key", 1, "the index alone is signed by another", index_of(lambda data: data, signer=RIVAL)),
    ("index-of-another-type", 1, "the list is signed as a manifest", index_of(lambda data: data, kind=MANIFEST_TYPE)),
    ("index-duplicate-key", 1, "a key twice in one object",
     index_of(first(b'"version":1', b'"version":1,"version":1'))),
    ("index-float", 1, "version 1.0", index_of(first(b'"version":1', b'"version":1.0'))),
    ("index-huge-integer", 1, "a version beyond 2^53", index_of(first(b'"version":1', b'"version":9007199254740993'))),
    ("index-deep", 1, "5,000 arrays in one another", index_of(lambda data: DEEP)),
    ("index-not-canonical", 1, "white space in the signed list", index_of(first(b",", b", "))),
    ("index-unknown-field", 1, "a field that no list has", index_fields(favourite=True)),
    ("index-of-no-version", 1, "version 0", index_fields(version=0)),
    ("index-later-without-reason", 1, "a second version that supersedes none", index_fields(version=2)),
    ("index-other-order", 1, "names not in byte order", index_files(lambda files: files.reverse())),
    ("index-file-twice", 1, "a name twice in the list", index_files(lambda files: files.insert(0, files[0]))),
    ("index-path-traversal", 1, "../manifest.json in the list", listed("../manifest.json")),
    ("index-path-traversal-inside", 1, "patches/../../x.patch in the list", listed("patches/../../x.patch")),
    ("index-absolute-path", 1, "/etc/hostname in the list", listed("/etc/hostname")),
    ("index-empty-name", 1, "an empty name in the list", listed("")),
    ("index-of-another-manifest", 2, "the list names another manifest", index_fields(manifest_digest=OTHER)),
    ("index-of-another-round", 2, "the list names another round", index_fields(round_id="large")),
]  # fmt: skip


def _rival_checkpoint(files: Files) -> None:
    spelled = files[B.STATEMENTS].splitlines()
    files[B.CHECKPOINT] = sign_checkpoint(checkpoint_of("small", spelled), RIVAL)


def _other_origin(files: Files) -> None:
    spelled = files[B.STATEMENTS].splitlines()
    files[B.CHECKPOINT] = sign_checkpoint(checkpoint_of("large", spelled), SIGNER)


def _false_success(files: Files) -> None:
    """The second run failed verification; classification, score and closing say otherwise."""
    alter(K.ATTEMPT_CLASSIFIED, 1, verified=True)(files)
    alter(K.RUN_SCORED, 1, outcome="success")(files)
    counts = next(s.body for s in statements_of(files) if s.kind is K.ROUND_CLOSED)
    alter(K.ROUND_CLOSED, success=counts["success"] + 1, failure=counts["failure"] - 1)(files)


def _closed_without(files: Files) -> None:
    counts = next(s.body for s in statements_of(files) if s.kind is K.ROUND_CLOSED)
    alter(K.ROUND_CLOSED, failure=counts["failure"] - 1, missing=1)(files)


RESIGNED: Final[list[Defect]] = [
    ("manifest-float", 2, "repeats as 2.0", spelled_manifest(first(b'"replicates":2', b'"replicates":2.0'))),
    ("manifest-duplicate-key", 2, "a key twice in one object",
     spelled_manifest(first(b'"replicates":2', b'"replicates":2,"replicates":2'))),
    ("manifest-white-space", 2, "a newline after the manifest", spelled_manifest(lambda data: data + b"\n")),
    ("manifest-deep", 2, "5,000 arrays in one another", spelled_manifest(lambda data: DEEP)),
    ("manifest-unknown-field", 2, "a cap that no envelope has",
     spelled_manifest(first(b'"envelope":{', b'"envelope":{"arms":9,'))),
    ("manifest-signed-as-a-grant", 2, "signed under another type",
     spelled_manifest(lambda data: data, AUTHORIZATION_TYPE)),
    ("manifest-padding-bits", 2, "the signature in a second spelling of base64", padded(B.MANIFEST_ENVELOPE)),
    ("manifest-not-signed", 2, "64 zeros as signature",
     envelope(B.MANIFEST_ENVELOPE, lambda e: e["signatures"][0].update(sig="A" * 86 + "=="))),
    ("task-exchanged", 3, "another task under the same root",
     spelled_manifest(lambda data: data.replace(_task_digest(data), OTHER.encode(), 1))),
    ("log-float", 4, "a moment as a float", spelled_log(first(b',"body"', b'.0,"body"'))),
    ("log-duplicate-key", 4, "a key twice in one statement",
     spelled_log(first(b'"sequence":0', b'"sequence":0,"sequence":0'))),
    ("log-deep", 4, "a body of 5,000 arrays", spelled_log(first(b'"body":{', b'"body":{"x":' + DEEP + b","))),
    ("log-nan", 4, "NaN in a statement", spelled_log(first(b'"sequence":0', b'"sequence":NaN'))),
    ("log-not-utf-8", 4, "a byte that is no UTF-8", spelled_log(first(b'"subject":"small"', b'"subject":"sm\xffll"'))),
    ("log-lone-surrogate", 4, "half a pair of surrogates",
     spelled_log(first(b'"subject":"small"', b'"subject":"\\ud800"'))),
    ("log-last-newline", 4, "no newline after the last statement",
     changed(B.STATEMENTS, lambda data: data[:-1])),
    ("log-empty-line", 4, "an empty line", spelled_log(lambda data: data + b"\n")),
    ("log-carriage-returns", 4, "lines that end as on Windows", spelled_log(lambda data: data.replace(b"\n", b"\r\n"))),
    ("log-empty", 4, "no statement at all", put(B.STATEMENTS, b"")),
    ("log-reordered", 4, "two statements in each other's places, signed so", spelled_log(exchanged_lines(6, 7))),
    ("log-doubled", 4, "a statement twice, signed so", spelled_log(doubled_line(9))),
    ("older-checkpoint", 4, "checkpoint.txt signs an older state",
     lambda files: files.__setitem__(B.CHECKPOINT, files[B.checkpoint_name(3)])),
    ("checkpoint-by-another-key", 4, "checkpoint.txt is signed by another", _rival_checkpoint),
    ("checkpoint-of-another-round", 4, "checkpoint.txt has another origin", _other_origin),
    ("checkpoint-with-more", 4, "a line after the signature",
     changed(B.CHECKPOINT, lambda data: data + b"more\n")),
    ("checkpoint-size-spelled", 4, "the size with a zero before it",
     changed(B.CHECKPOINT, lambda data: data.replace(b"\n", b"\n0", 1))),
    ("grant-padding-bits", 4, "the grant's signature in a second spelling of base64", padded(B.AUTHORIZATION)),
    ("run-dropped", 6, "a failed run left out of log, ledger, dataset and analysis, and counted as missing",
     carried(_closed_without, without_run(1))),
    ("success-carried-through", 6, "a failed verdict told as a success, from its classification to the analysis",
     carried(_false_success)),
    ("unknown-counted-as-zero", 7, "an unknown cost told as zero in log, dataset and analysis",
     carried(unknown_as_zero)),
    ("ledger-float", 7, "a count as a float", changed(B.LEDGER, first(b'"sequence":1', b'"sequence":1.0'))),
    ("ledger-duplicate-key", 7, "a key twice in one row",
     changed(B.LEDGER, first(b'"sequence":1', b'"sequence":1,"sequence":1'))),
    ("ledger-deep", 7, "5,000 arrays in one another", changed(B.LEDGER, lambda data: data + DEEP + b"\n")),
    ("request-twice", 7, "a row of the ledger twice", changed(B.LEDGER, doubled_line(0))),
    ("ledger-empty", 7, "no request at all", put(B.LEDGER, b"")),
    ("refusal-added", 7, "a refusal twice", changed(B.REFUSALS, doubled_line(0))),
    ("price-with-a-zero-more", 7, "the exact charge in a second spelling",
     lambda files: row(B.LEDGER, 0, usd=_first_usd(files) + "0")(files)),
    ("dataset-time-shortened", 9, "another time than the log's", row(B.DATASET, 0, wall_ms=1)),
    ("dataset-reordered", 9, "two rows in each other's places", changed(B.DATASET, exchanged_lines(0, 1))),
    ("dataset-empty", 9, "no rows", put(B.DATASET, b"")),
    ("analysis-float", 9, "a count as a float", changed(B.ANALYSIS, first(b'"successes":', b'"successes":0.'))),
    ("analysis-white-space", 9, "a newline after the analysis", changed(B.ANALYSIS, lambda data: data + b"\n")),
    ("conclusion-changed", 9, "another headline, in analysis and aggregate", conclusion),
    ("aggregate-changed", 11, "a number of the aggregate", changed(B.AGGREGATE, first(b'"shown":"', b'"shown":"9'))),
    ("aggregate-empty", 11, "an aggregate of nothing", put(B.AGGREGATE, b"{}")),
    ("excerpts-empty", 11, "no excerpts", put(B.EXCERPTS, b"")),
    ("excerpt-dropped", 11, "one verdict has no excerpt", cut_row(B.EXCERPTS, 0)),
    ("excerpts-reordered", 11, "excerpts not in the order of the log", changed(B.EXCERPTS, exchanged_lines(0, 1))),
    ("excerpt-exit-code", 11, "another exit code than the verdict's", row(B.EXCERPTS, 0, exit_code=7)),
    ("excerpt-moves-the-terminal", 11, "an escape sequence in an excerpt",
     changed(B.EXCERPTS, first(b'"text":"', b'"text":"\\u001b[31m'))),
]  # fmt: skip

SUMMED: Final[list[Defect]] = [
    ("sums-short", 11, "a file is missing in SHA256SUMS", changed(B.SUMS, lambda data: data[data.index(b"\n") + 1 :])),
    ("sums-wrong", 11, "another digest in SHA256SUMS", changed(B.SUMS, lambda data: b"0" * 64 + data[64:])),
    ("sums-empty", 11, "nothing in SHA256SUMS", put(B.SUMS, b"")),
]

APPROVALS: Final[list[Defect]] = [
    ("approval-absent", 11, "nobody approved a measured round", without(B.APPROVAL)),
    ("approval-by-the-publisher", 11, "the publisher approved his own report", approval(SIGNER)),
    ("approval-by-a-stranger", 11, "approved by a key that the manifest does not name", approval(RIVAL)),
    ("approval-too-early", 11, "approved before the round was closed", approval(PERSON, at=InstantMs(0))),
    ("approval-of-another-report", 11, "approved was another report", approval(PERSON, report=b"<p>another")),
    ("approval-of-another-analysis", 11, "approved was another analysis", approval(PERSON, analysis=b"{}")),
    ("approval-padding-bits", 11, "its signature in a second spelling of base64", padded(B.APPROVAL)),
]


def others(good: Mapping[str, Files]) -> list[tuple[str, str, int, str, Callable[[Files], Any]]]:
    """Defects of the other protocols, and files of one round in another: name, good bundle, step, what, how."""
    harness, cost, matrix = "harness-round", "cost-index", "optimizer-matrix"

    def of(protocol: str, *names: str) -> Callable[[Files], None]:
        return lambda files: files.update({name: good[protocol][name] for name in names})

    log = (B.STATEMENTS, B.CHECKPOINT, *(name for name in good[cost] if B.checkpoint_size(name)))
    found: list[tuple[str, str, int, str, Callable[[Files], Any]]] = [
        ("manifest-of-another-round", harness, 4, "manifest and its signature are another round's",
         of(cost, B.MANIFEST, B.MANIFEST_ENVELOPE)),
        ("log-of-another-round", harness, 4, "the log and its signed states are another round's", of(cost, *log)),
        ("grant-of-another-round", harness, 4, "the grant is another round's", of(cost, B.AUTHORIZATION)),
        ("ledger-of-another-round", harness, 7, "the ledger is another round's", of(cost, B.LEDGER)),
        ("refusals-of-another-round", harness, 7, "the refusals are another round's", of(cost, B.REFUSALS)),
        ("analysis-of-another-round", harness, 9, "the analysis is another round's", of(cost, B.ANALYSIS)),
        ("excerpts-of-another-round", harness, 11, "the excerpts are another round's", of(cost, B.EXCERPTS)),
        ("aggregate-of-another-round", harness, 11, "the aggregate is another round's", of(cost, B.AGGREGATE)),
    ]  # fmt: skip
    for protocol in (cost, matrix):
        found += [
            (f"{protocol}-false-success", protocol, 6, "a failed verdict told as a success", carried(_false_success)),
            (f"{protocol}-unknown-as-zero", protocol, 7, "an unknown cost told as zero", carried(unknown_as_zero)),
            (f"{protocol}-cheaper-request", protocol, 7, "a request that costs less", row(B.LEDGER, 0, usd="0.000001")),
            (f"{protocol}-dataset-turned", protocol, 9, "an outcome of the dataset",
             row(B.DATASET, 1, outcome="success")),
            (f"{protocol}-conclusion-changed", protocol, 9, "another headline, in analysis and aggregate", conclusion),
            (f"{protocol}-report-unmarked", protocol, 10, "the report does not say that it is a rehearsal",
             put(B.REPORT, b"<h1>Results</h1>")),
        ]  # fmt: skip
    return found


def _task_digest(data: bytes) -> bytes:
    start = data.index(b'"task_digest":"') + len(b'"task_digest":"')
    return data[start : start + len(OTHER)]


def _first_usd(files: Files) -> str:
    usd = json.loads(files[B.LEDGER].splitlines()[0])["usd"]
    assert isinstance(usd, str) and "." in usd
    return usd
