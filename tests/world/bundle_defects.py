"""Defects for the conformance folder that are more than one altered claim: bytes, keys, names, whole rounds."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

from controller.conductor.recompute import RoundRecompute
from controller.domain.ids import sha256_digest
from controller.domain.instant import InstantMs
from controller.domain.keys import PublicKey
from controller.domain.statement import Statement
from controller.evidence import bundle
from controller.evidence.approval import approved_of, sign_approval
from controller.evidence.canonical import dumps
from controller.evidence.envelope import (
    AUTHORIZATION_TYPE,
    INDEX_TYPE,
    MANIFEST_TYPE,
    sign,
)
from controller.evidence.log import checkpoint_of
from controller.evidence.note import sign_checkpoint
from controller.ports.signer import Signer
from tests.world.signer import FixedSigner
from tests.world.tampering import SIGNER, Files, K, Tamper, relog, statements_of

RIVAL, PERSON = FixedSigner("rival"), FixedSigner("a person")
DEEP: Final = b"[" * 5_000 + b"]" * 5_000
LATER: Final = InstantMs(2_000_000_000_000)
Defect = tuple[str, int, str, Tamper]  # name, step, what is wrong, what to do


class SmallOrderSigner:
    """A key that is the neutral element: one signature fits every message."""

    key = PublicKey.of(b"\x01" + bytes(31))

    def sign(self, message: bytes) -> bytes:
        return b"\x01" + bytes(63)


def payload(envelope: bytes) -> bytes:
    """What an envelope holds, unchecked."""
    return base64.b64decode(json.loads(envelope)["payload"])


def signed_by(signer: Signer, files: Files) -> Files:
    """The same round, signed by somebody else throughout, with his key inside. The index is made anew as well."""
    found = dict(files)
    for name, kind in ((bundle.MANIFEST_ENVELOPE, MANIFEST_TYPE), (bundle.AUTHORIZATION, AUTHORIZATION_TYPE)):
        found[name] = sign(kind, payload(files[name]), signer)
    spelled = files[bundle.STATEMENTS].splitlines()
    for name in files:
        if size := bundle.checkpoint_size(name):
            found[name] = sign_checkpoint(checkpoint_of("small", spelled[:size]), signer)
    found[bundle.CHECKPOINT] = sign_checkpoint(checkpoint_of("small", spelled), signer)
    key = {"algorithm": "ed25519", "id": signer.key.id, "public_hex": signer.key.public_hex}
    found[bundle.KEYS] = dumps({"keys": [key], "schema_version": "fairtrial.keys/1"})
    found[bundle.SUMS] = bundle.sums(found)
    del found[bundle.INDEX]
    digest = sha256_digest(found[bundle.MANIFEST])
    return bundle.build(found, signer, round_id="small", manifest_digest=digest)


# What anyone may do: nothing is signed anew.


def cut(name: str, kept: int) -> Tamper:
    """All but the first or, if negative, the last so many bytes."""
    return lambda files: files.__setitem__(name, files[name][:kept])


def flipped(name: str, place: int = 100) -> Tamper:
    def tamper(files: Files) -> None:
        data = bytearray(files[name])
        data[place] ^= 1
        files[name] = bytes(data)

    return tamper


def swapped(one: str, other: str) -> Tamper:
    def tamper(files: Files) -> None:
        files[one], files[other] = files[other], files[one]

    return tamper


def replaced(name: str, old: bytes, new: bytes) -> Tamper:
    """The first place that holds these bytes holds others."""

    def tamper(files: Files) -> None:
        assert old in files[name], (name, old)
        files[name] = files[name].replace(old, new, 1)

    return tamper


def without(name: str) -> Tamper:
    return lambda files: files.__delitem__(name)


def put(name: str, data: bytes) -> Tamper:
    return lambda files: files.__setitem__(name, data)


def padded(name: str) -> Tamper:
    """The envelope's signature in a second spelling: a bit under the padding, which lenient readers ignore."""

    def tamper(files: Files) -> None:
        envelope = json.loads(files[name])
        text = envelope["signatures"][0]["sig"]
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        assert text.endswith("==")
        other = text[:-3] + letters[letters.index(text[-3]) ^ 1] + "=="
        assert base64.b64decode(other) == base64.b64decode(text)
        envelope["signatures"][0]["sig"] = other
        files[name] = dumps(envelope)

    return tamper


def envelope(name: str, change: Callable[[dict[str, Any]], Any]) -> Tamper:
    """The envelope's JSON form, changed."""

    def tamper(files: Files) -> None:
        found = json.loads(files[name])
        change(found)
        files[name] = dumps(found)

    return tamper


# What the key holder may do to the index itself.


def index_of(change: Callable[[bytes], bytes], *, signer: Signer = SIGNER, kind: str = INDEX_TYPE) -> Tamper:
    """Another payload of the index, signed."""
    return lambda files: files.__setitem__(bundle.INDEX, sign(kind, change(payload(files[bundle.INDEX])), signer))


def index_fields(**changes: Any) -> Tamper:
    return index_of(lambda data: dumps({**json.loads(data), **changes}))


def index_files(change: Callable[[list[dict[str, Any]]], object]) -> Tamper:
    """The list of files, changed."""

    def changed(data: bytes) -> bytes:
        found = json.loads(data)
        change(found["files"])
        return dumps(found)

    return index_of(changed)


def listed(name: str) -> Tamper:
    """One more file in the list, in its place by name; no such file is there."""
    entry = {"bytes": 0, "digest": sha256_digest(b""), "name": name}

    def change(files: list[dict[str, Any]]) -> None:
        files.append(entry)
        files.sort(key=lambda each: each["name"].encode())

    return index_files(change)


# What the key holder may do to the other files; the index is signed anew afterwards.


def spelled_log(change: Callable[[bytes], bytes]) -> Tamper:
    """Other bytes of the log, signed as they are."""

    def tamper(files: Files) -> None:
        files[bundle.STATEMENTS] = change(files[bundle.STATEMENTS])
        whole = files[bundle.STATEMENTS].split(b"\n")[:-1]
        for name in [name for name in files if bundle.checkpoint_size(name)]:
            size = bundle.checkpoint_size(name)
            files[name] = sign_checkpoint(checkpoint_of("small", whole[:size]), SIGNER)
        files[bundle.CHECKPOINT] = sign_checkpoint(checkpoint_of("small", whole), SIGNER)

    return tamper


def exchanged_lines(one: int, other: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        rows = data.splitlines(keepends=True)
        rows[one], rows[other] = rows[other], rows[one]
        return b"".join(rows)

    return change


def doubled_line(position: int) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        rows = data.splitlines(keepends=True)
        rows.insert(position, rows[position])
        return b"".join(rows)

    return change


def changed(name: str, change: Callable[[bytes], bytes]) -> Tamper:
    return lambda files: files.__setitem__(name, change(files[name]))


def first(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        assert old in data, old
        return data.replace(old, new, 1)

    return change


def spelled_manifest(change: Callable[[bytes], bytes], kind: str = MANIFEST_TYPE) -> Tamper:
    """Other bytes of the manifest, signed."""

    def tamper(files: Files) -> None:
        files[bundle.MANIFEST] = change(files[bundle.MANIFEST])
        files[bundle.MANIFEST_ENVELOPE] = sign(kind, files[bundle.MANIFEST], SIGNER)

    return tamper


def carried(*tampers: Tamper) -> Tamper:
    """Several changes that belong to one lie, with dataset, analysis and aggregate made to follow from it."""

    def tamper(files: Files) -> None:
        for one in tampers:
            one(files)
        recompute = RoundRecompute()
        manifest = recompute.manifest(files[bundle.MANIFEST])
        digest = sha256_digest(files[bundle.MANIFEST])
        files[bundle.DATASET] = recompute.dataset(manifest, digest, statements_of(files))
        files[bundle.ANALYSIS] = recompute.analysis(manifest, files[bundle.DATASET])
        files[bundle.AGGREGATE] = recompute.aggregate(manifest, files[bundle.DATASET], files[bundle.ANALYSIS])

    return tamper


def without_run(number: int) -> Tamper:
    """Every statement about one logical run is gone, and its requests, refusals and patches."""

    def tamper(files: Files) -> None:
        statements = statements_of(files)
        run = [s for s in statements if s.kind is K.RUN_SCORED][number].subject
        attempts = [s.subject for s in statements if s.kind is K.ATTEMPT_INTENDED and s.body["run"] == run]
        machines = {run, *attempts, *(name.replace("att-", "ver-") for name in attempts)}
        relog(files, [s for s in statements if s.subject not in machines])
        for name in (bundle.LEDGER, bundle.REFUSALS, bundle.EXCERPTS):
            rows = files[name].splitlines(keepends=True)
            files[name] = b"".join(row for row in rows if json.loads(row)["attempt_id"] not in attempts)
        for name in attempts:
            files.pop(bundle.patch_name(name), None)

    return tamper


def unknown_as_zero(files: Files) -> None:
    """The run of unknown cost is told as if its unknown request had been free; the ledger still says unknown."""
    found: list[Statement] = []
    usd = {}
    for each in statements_of(files):
        body = dict(each.body)
        if each.kind is K.RUN_INVALIDATED:
            continue
        if each.kind is K.ATTEMPT_SETTLED and not body["valid"]:
            rows = [json.loads(row) for row in files[bundle.LEDGER].splitlines()]
            (known,) = [row["usd"] for row in rows if row["attempt_id"] == each.subject and row["usd"]]
            body |= {"valid": True, "usd": known, "problems": []}
            usd["run"] = known
        elif each.kind is K.RUN_SCORED and body["outcome"] == "invalid":
            body |= {"outcome": "success", "usd": usd["run"]}
        elif each.kind is K.ROUND_SETTLED:
            body |= {"usd": body["floor_usd"], "figure": "exact", "invalid_runs": []}
        elif each.kind is K.ROUND_CLOSED:
            body |= {"success": body["success"] + body["invalid"], "invalid": 0}
        found.append(each.model_copy(update={"body": body}))
    relog(files, found)


def conclusion(files: Files) -> None:
    """Another headline of the analysis, and of the aggregate, which follows from it."""
    analysis = json.loads(files[bundle.ANALYSIS])
    aggregate = json.loads(files[bundle.AGGREGATE])
    name = next(key for key, value in analysis.items() if value == aggregate["conclusion"])
    analysis[name] = aggregate["conclusion"] = "Alpha is better than beta."
    files[bundle.ANALYSIS] = dumps(analysis)
    aggregate["sources"]["analysis"] = sha256_digest(files[bundle.ANALYSIS])
    files[bundle.AGGREGATE] = dumps(aggregate)


def approval(signer: Signer, *, at: InstantMs = LATER, **instead: bytes) -> Tamper:
    """An approval by that key, of the files as they are or with others `instead`."""

    def tamper(files: Files) -> None:
        names = {"report": bundle.REPORT, "analysis": bundle.ANALYSIS}
        shown = {**files, **{names[key]: data for key, data in instead.items()}}
        files[bundle.APPROVAL] = sign_approval(approved_of("small", shown), signer, at)

    return tamper
